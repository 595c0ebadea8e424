//! Regions and settings at their edges.

use bufcore::{ConfigError, RegionError};
use bufring::{Builder, RingPool, Writer};

fn leaked(bytes: usize) -> &'static mut [u8] {
    Box::leak(vec![0x5A; bytes].into())
}

#[test]
fn t37_returned_regions_are_not_taken_to_be_zero() {
    testkit::trials::zeroed::t37_given_back(
        |region| Builder::new().build_in(region).expect("room enough"),
        |ring| ring.into_region().expect("all was released"),
    );
}

/// A static region that starts at any address serves exactly its capacity, and every byte of it.
#[test]
fn misaligned_static_regions() {
    for skip in 0..70 {
        let bytes = &mut leaked(2000)[skip..];
        let range = bytes.as_ptr_range();
        let (first, end) = (range.start.addr(), range.end.addr());
        let mut ring = Builder::new().build_static(bytes).expect("room enough");
        let capacity = ring.capacity();
        let mut buf = ring.acquire(capacity).expect("all of it");
        buf.resize(capacity, 1).expect("asked for");
        let start = buf.as_ptr().addr();
        assert!(first < start && start + capacity <= end, "outside of the region");
        assert!(capacity > 1700, "{capacity} bytes are left");
    }
}

/// Trimming takes nothing from anyone, also where `bufcore` has the feature `mmap` from elsewhere,
/// and this crate does not have it.
#[test]
fn all_is_there_after_a_trim() {
    let mut ring = RingPool::new(1 << 20).expect("settings are right");
    for _ in 0..3 {
        ring.trim();
        assert!(ring.acquire(1 << 20).is_ok());
    }
    ring.trim();
    assert!(ring.is_idle() && ring.into_region().is_ok());
}

#[test]
fn regions_that_are_too_small() {
    for bytes in 0..400 {
        match Builder::new().build_static(leaked(bytes)) {
            Ok(mut ring) => {
                assert!(ring.capacity() > 0);
                assert!(ring.acquire(ring.capacity()).is_ok());
            }
            Err(error) => {
                assert!(
                    matches!(error, ConfigError::RegionTooSmall { required, available } if available == bytes && required > bytes),
                    "{error}"
                );
                assert!(bytes < 300, "{bytes} bytes are enough");
            }
        }
    }
}

/// What `required_bytes` says is enough, wherever the region starts.
#[test]
fn required_bytes_are_enough() {
    for capacity in [1, 15, 16, 17, 100, 4096] {
        for alignment in [1, 16, 64, 256] {
            for buffers in [1, 3] {
                let settings = Builder::new().capacity(capacity).alignment(alignment).buffers(buffers);
                let bytes = settings.required_bytes().expect("settings are right");
                for skip in [0, 1, 15, 63] {
                    let memory = &mut leaked(bytes + skip)[skip..];
                    let mut ring = settings.build_static(memory).expect("enough");
                    let mut held = Vec::new();
                    for _ in 0..buffers {
                        let buf = ring.acquire(capacity / buffers).expect("planned for");
                        assert!(buf.capacity() == 0 || buf.as_ptr().addr() % alignment == 0);
                        held.push(buf);
                    }
                }
            }
        }
    }
}

/// What a large alignment costs: a guard takes as much in front of its block.
#[test]
fn a_buffer_of_a_page_takes_two() {
    const PAGE: usize = 4096;
    let region = bufcore::Region::heap(33 * PAGE, PAGE).expect("the heap has room");
    let mut ring = Builder::new().alignment(PAGE).build_in(region).expect("room enough");
    assert_eq!(ring.capacity(), 32 * PAGE - 16);
    let pages: Vec<_> = std::iter::from_fn(|| ring.acquire(PAGE).ok()).collect();
    assert_eq!(pages.len(), 16);
    assert!(pages.iter().all(|page| page.as_ptr().addr() % PAGE == 0));
    drop(pages);
    // Less than a page by the guard takes one.
    assert_eq!(std::iter::from_fn(|| ring.acquire(PAGE - 16).ok()).map(std::mem::forget).count(), 32);
}

/// Parts of a buffer of pages find its start again, and its room.
#[test]
fn pages_split_and_grow() {
    let bytes = leaked(40 * 4096);
    let range = bytes.as_ptr_range();
    let mut ring = Builder::new().alignment(4096).build_static(bytes).expect("room enough");
    let mut buf = ring.acquire(3 * 4096).expect("room");
    buf.resize(3 * 4096, 7).expect("asked for");
    let start = buf.as_ptr();
    let tail = buf.split_off(4096);
    drop(buf);
    let mut tail = tail;
    tail.compact();
    assert_eq!((tail.as_ptr(), tail.len(), tail.capacity()), (start, 2 * 4096, 3 * 4096));
    let mut message = Writer::new(&mut ring);
    for step in 0..100_u8 {
        message.extend_from_slice(&[step; 100]).expect("room");
    }
    let message = message.finish();
    assert_eq!((message.len(), message.as_ptr().addr() % 4096), (10_000, 0));
    // The next page behind its three.
    let next = ring.acquire(1).expect("room");
    assert_eq!(next.as_ptr().addr() - message.as_ptr().addr(), 3 * 4096);
    assert!(range.contains(&next.as_ptr()));
    assert!(tail.iter().all(|&byte| byte == 7));
    drop((tail, message, next));
}

#[test]
fn settings_that_are_wrong() {
    let error = |settings: Builder| settings.build().err();
    let expected = if usize::BITS < 64 { 1 << 20 } else { 8 << 20 };
    assert_eq!(Builder::new().build().expect("there is a default").capacity(), expected);
    assert_eq!(error(Builder::new().capacity(0)), Some(ConfigError::Zero { setting: "capacity" }));
    assert_eq!(error(Builder::new().capacity(1).buffers(0)), Some(ConfigError::Zero { setting: "buffers" }));
    for alignment in [0, 3, usize::MAX] {
        let settings = Builder::new().capacity(1).alignment(alignment);
        assert_eq!(error(settings), Some(ConfigError::BadAlignment { alignment }));
    }
    // More than a ring counts; of 32 bits it counts all that there are.
    let beyond = [
        #[cfg(target_pointer_width = "64")]
        ((16 << 32) + 1),
        #[cfg(target_pointer_width = "64")]
        (1 << 60),
        usize::MAX,
    ];
    for capacity in beyond {
        let Some(ConfigError::TooLarge { setting, requested, limit }) =
            error(Builder::new().capacity(capacity))
        else {
            panic!("{capacity} bytes")
        };
        assert_eq!((setting, requested), ("capacity", capacity));
        assert!(limit as u64 <= u64::from(u32::MAX) * 16 && limit < capacity, "{limit}");
    }
    let refused = error(Builder::new().alignment(1 << (usize::BITS - 1)));
    assert!(matches!(refused, Some(ConfigError::TooLarge { setting: "alignment", .. })), "{refused:?}");
    // More than there is; of 32 bits a machine may have them all.
    let largest = if cfg!(target_pointer_width = "32") { 1 << 28 } else { (1_u64 << 35) as usize };
    let refused = error(Builder::new().capacity(1).alignment(largest));
    assert!(
        matches!(refused, None | Some(ConfigError::Region(RegionError::OutOfMemory { .. }))),
        "{refused:?}"
    );
}

/// What a refusal names as the limit is the largest value that is taken, beside the other settings.
#[cfg(target_pointer_width = "64")]
#[test]
fn limits_are_the_largest_values_that_work() {
    let mut refusals = [0, 0];
    for alignment in [1, 64, 256, 512, 4096, 1 << 19, 1 << 30, 1 << 35] {
        for capacity in [1, 1 << 20, 60 << 30, 64 << 30, usize::MAX] {
            for buffers in [1, 3, 16, 99, 1000, 1 << 30, 1 << 40, usize::MAX] {
                let settings = Builder::new().alignment(alignment).capacity(capacity).buffers(buffers);
                match settings.required_bytes() {
                    Ok(_) => {}
                    Err(ConfigError::TooLarge { setting: "buffers", requested, limit }) => {
                        refusals[0] += 1;
                        assert!(requested == buffers && (1..buffers).contains(&limit), "{settings}: {limit}");
                        let is_possible = settings.buffers(1).required_bytes().is_ok();
                        let settings = settings.capacity(if is_possible { capacity } else { 1 });
                        assert!(settings.buffers(limit).required_bytes().is_ok(), "{settings}: {limit}");
                        assert!(settings.buffers(limit + 1).required_bytes().is_err(), "{settings}: {limit}");
                    }
                    Err(ConfigError::TooLarge { setting: "capacity", requested, limit }) => {
                        refusals[1] += 1;
                        assert!(
                            requested == capacity && (1..capacity).contains(&limit),
                            "{settings}: {limit}"
                        );
                        assert!(settings.capacity(limit).required_bytes().is_ok(), "{settings}: {limit}");
                        let more = settings.capacity(limit + 1);
                        assert!(more.required_bytes().is_err(), "{settings}: {limit}");
                    }
                    Err(error) => panic!("{settings}: {error}"),
                }
            }
        }
    }
    assert!(refusals[0] > 20 && refusals[1] > 20, "{refusals:?}");
}

/// An alignment at which one block is more than a ring can count is refused, whatever the region
/// and with or without a capacity.
#[cfg(target_pointer_width = "64")]
#[test]
fn alignments_beyond_the_limit() {
    for shift in 36..61 {
        let alignment = 1 << shift;
        let bad = ConfigError::TooLarge { setting: "alignment", requested: alignment, limit: 1 << 35 };
        for settings in [Builder::new(), Builder::new().capacity(1), Builder::new().capacity(1 << 20)] {
            let settings = settings.alignment(alignment);
            assert_eq!(settings.required_bytes().err(), Some(bad), "2^{shift}");
            assert_eq!(settings.build_static(leaked(4096)).err(), Some(bad), "2^{shift}");
        }
    }
    // Half of the limit is the most: one block, whose bytes and guard together are that much.
    let most = Builder::new().capacity(1).alignment(1 << 35);
    assert!(most.required_bytes().is_ok_and(|bytes| bytes <= 3 << 35));
}

/// The same in a region in which such a block would have a place.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn alignments_beyond_the_limit_in_a_vast_region() {
    let refused = Builder::new().alignment(1 << 36).build_static(testkit::process::vast(3 << 36));
    let expected = ConfigError::TooLarge { setting: "alignment", requested: 1 << 36, limit: 1 << 35 };
    assert_eq!(refused.err(), Some(expected));
}

/// More than can be counted is used in part.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_region_beyond_the_limit() {
    const LIMIT: usize = 16 << 32;
    let mut ring = Builder::new().build_static(testkit::process::vast(LIMIT + (1 << 20))).expect("in part");
    // What is not there are the guards, and the lines that they begin at.
    let missing = LIMIT - ring.capacity();
    assert!((1..=128).contains(&missing), "{missing}");
    let mut all = ring.acquire(ring.capacity()).expect("all that is counted");
    let spare = all.spare_mut();
    let last = spare.len() - 1;
    (spare[0], spare[last]) = (1, 2);
    drop(all);
    let first = ring.acquire(LIMIT / 2).expect("half");
    let second = ring.acquire(LIMIT / 2 - 256).expect("the other half");
    assert!(second.as_ptr().addr() >= first.as_ptr().addr() + LIMIT / 2);
}
