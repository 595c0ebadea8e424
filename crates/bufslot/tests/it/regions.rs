//! Regions and settings at their edges.

use bufcore::{AcquireError, ConfigError, NoFallback, Region, RegionError};
use bufslot::{Builder, SlotPool};

fn leaked(bytes: usize) -> &'static mut [u8] {
    Box::leak(vec![0x5A; bytes].into())
}

/// A static region that starts at any address serves exactly its capacity, and every byte of it.
#[test]
fn misaligned_static_regions() {
    for skip in 0..70 {
        let bytes = &mut leaked(2000)[skip..];
        let range = bytes.as_ptr_range();
        let (first, end) = (range.start.addr(), range.end.addr());
        let mut pool =
            Builder::new().slots(4).build_in(Region::from_static(bytes), NoFallback).expect("room enough");
        let capacity = pool.capacity();
        let mut buf = pool.acquire(capacity).expect("all of it");
        buf.spare_mut().fill(1);
        let start = buf.as_ptr().addr();
        assert!(first <= start && start + capacity == end, "{skip}: {capacity} bytes from {start:#x}");
        assert!(matches!(pool.acquire(1), Err(AcquireError::Exhausted { requested: 1, available: 0 })));
        let pool = pool.into_region().expect_err("a buffer is out");
        drop(buf);
        // The same memory again, for another pool.
        let region = pool.into_region().expect("all was released");
        let again = Builder::new().slots(1).build_in(region, NoFallback).expect("room enough");
        assert!(again.capacity() > capacity, "fewer slots leave more room");
    }
}

#[test]
fn t37_returned_regions_are_not_taken_to_be_zero() {
    testkit::trials::zeroed::t37_given_back(
        |region| Builder::new().slots(16).build_in(region, NoFallback).expect("room enough"),
        |pool| pool.into_region().expect("all was released"),
    );
}

/// Trimming takes nothing from anyone, also where `bufcore` has the feature `mmap` from elsewhere,
/// and this crate does not have it.
#[test]
fn all_is_there_after_a_trim() {
    let mut pool =
        SlotPool::builder().capacity(1 << 20).slots(2).build_with(NoFallback).expect("settings are right");
    for _ in 0..3 {
        pool.trim();
        assert!(pool.acquire(1 << 20).is_ok());
    }
    pool.trim();
    assert!(pool.is_idle() && pool.into_region().is_ok());
}

/// The exact number of bytes that a region needs, wherever it starts; one less than the least is
/// refused.
#[test]
fn required_bytes_are_enough_and_no_more_than_an_alignment_too_many() {
    for (slots, capacity, alignment) in [(1, 1, 1), (2, 100, 16), (8, 1000, 64), (3, 5, 4096)] {
        let builder = Builder::new().slots(slots).capacity(capacity).alignment(alignment).stagger(false);
        let required = builder.required_bytes().expect("settings are right");
        for skip in 0..64 {
            let region = Region::from_static(&mut leaked(required + skip)[skip..]);
            let mut pool = builder.build_in(region, NoFallback).expect("as many bytes are required");
            assert_eq!(pool.acquire(capacity).expect("all of it").as_ptr().addr() % alignment, 0);
        }
        let refused =
            builder.build_in(Region::from_static(leaked(capacity)), NoFallback).expect_err("too small");
        let ConfigError::RegionTooSmall { required: least, available } = refused.error else {
            panic!("{refused}");
        };
        assert!(available == capacity && least > capacity && least <= required);
        assert_eq!(refused.region.len(), capacity, "the region comes back");
    }
}

#[test]
fn tiny_regions_are_refused() {
    for bytes in [0, 1, 31, 63] {
        let refused = Builder::new().slots(1).build_in(Region::from_static(leaked(bytes)), NoFallback);
        let refused = refused.expect_err("there is no room for the bookkeeping");
        assert!(matches!(refused.error, ConfigError::RegionTooSmall { available, .. } if available == bytes));
        assert_eq!((refused.region.len(), refused.fallback), (bytes, NoFallback));
    }
    assert!(matches!(Region::heap(0, 1), Err(RegionError::Empty)));
    assert!(matches!(Region::heap(8, 3), Err(RegionError::BadAlignment { alignment: 3 })));
    assert!(matches!(Region::heap(usize::MAX, 64), Err(RegionError::TooLarge { .. })));
}

#[test]
fn settings_at_their_edges() {
    let over = isize::MAX as usize + 1;
    let error = |builder: Builder| builder.build().map(drop).expect_err("not a pool");
    let pool = SlotPool::builder;
    assert_eq!(error(pool().capacity(100).slots(0)), ConfigError::Zero { setting: "slots" });
    assert_eq!(error(pool().capacity(0)), ConfigError::Zero { setting: "capacity" });
    let default = if usize::BITS < 64 { 1 << 20 } else { 8 << 20 };
    assert!(pool().build().expect("there is a default").capacity() >= default);
    for capacity in [usize::MAX, usize::MAX - 1, over, isize::MAX as usize] {
        assert!(matches!(
            error(pool().capacity(capacity)),
            ConfigError::TooLarge { setting: "capacity", requested, limit } if requested == capacity && limit < capacity
        ));
        assert!(pool().capacity(capacity).required_bytes().is_err());
    }
    for slots in [usize::MAX, u32::MAX as usize, u32::MAX as usize - 1] {
        assert!(matches!(
            error(pool().capacity(1).slots(slots)),
            ConfigError::TooLarge { setting: "slots", requested, limit } if requested == slots && limit < slots
        ));
    }
    for alignment in [0, 3, usize::MAX] {
        assert_eq!(error(pool().capacity(1).alignment(alignment)), ConfigError::BadAlignment { alignment });
    }
    let (requested, limit) = (1 << (usize::BITS - 1), 1 << (usize::BITS - 4));
    let refused = error(pool().capacity(1).alignment(requested));
    assert_eq!(refused, ConfigError::TooLarge { setting: "alignment", requested, limit });
    // The limit beside the other settings, with and without the gaps between large buffers.
    for settings in [pool().slots(1000), pool().slots(1000).stagger(false)] {
        let ConfigError::TooLarge { limit, .. } = error(settings.capacity(isize::MAX as usize)) else {
            panic!("{settings}")
        };
        assert!(settings.capacity(limit).required_bytes().is_ok(), "{settings}: {limit}");
        assert!(settings.capacity(limit + 1).required_bytes().is_err(), "{settings}: {limit}");
    }
    // Legal, and more than there is; of 32 bits a machine may have them all.
    let refused = pool().capacity(1).alignment(isize::MAX as usize / 8 + 1).build().is_err();
    assert!(refused || cfg!(target_pointer_width = "32"));
    // Each refusal is said in words.
    assert!(error(pool().capacity(0)).to_string().contains("capacity"));
}

#[test]
fn one_two_and_a_thousand_slots() {
    for slots in [1, 2, 1000] {
        let mut pool =
            SlotPool::builder().capacity(slots * 10).slots(slots).build_with(NoFallback).expect("right");
        for round in 0..3 {
            let mut bufs: Vec<_> = (0..slots).map(|_| pool.acquire(10).expect("a slot for each")).collect();
            for (index, buf) in bufs.iter_mut().enumerate() {
                buf.resize(10, index as u8).expect("asked for");
            }
            let refused = pool.acquire(1).expect_err("all slots are taken");
            assert!(matches!(refused, AcquireError::Exhausted { requested: 1, .. }), "{refused}");
            assert!((0..slots).all(|slot| pool.is_taken(slot)));
            assert!(pool.acquire(0).is_ok(), "no bytes need no slot");
            for (index, buf) in bufs.iter().enumerate() {
                assert_eq!(buf[..], [index as u8; 10]);
            }
            // One in the middle comes back, and is handed out again.
            let freed = bufs.swap_remove(slots / 2);
            let address = freed.as_ptr();
            drop(freed);
            let again = pool.acquire(10).expect("one slot was released");
            assert_eq!(again.as_ptr(), address, "round {round} of {slots} slots");
        }
        assert!(pool.is_idle());
        let buf = pool.acquire(1).expect("room");
        assert!(pool.slot_of(&buf).is_some());
    }
}

/// Staggered or not, as many buffers fit as were asked for, at every alignment and in a region that
/// has no room for gaps.
#[test]
fn staggering_takes_no_places() {
    for alignment in [1, 64, 128, 256, 4096] {
        let bytes = alignment.max(1024);
        let builder = SlotPool::builder().capacity(64 * bytes).slots(64).alignment(alignment);
        let least = builder.stagger(false).required_bytes().expect("settings are right");
        let exact = Region::heap(least, 1).expect("the heap has room");
        for mut pool in [
            builder.build_with(NoFallback).expect("settings are right"),
            builder.build_in(exact, NoFallback).expect("as many bytes are required"),
        ] {
            let bufs: Vec<_> = (0..64).map_while(|_| pool.acquire(bytes).ok()).collect();
            assert_eq!(bufs.len(), 64, "buffers of {bytes} bytes that are aligned to {alignment}");
        }
    }
}

/// As many whole multiples of the alignment as were asked for fit in the region that is required
/// for them, whether buffers are staggered or not, and that region has little more.
#[test]
fn whole_multiples_of_the_alignment_are_not_wasted() {
    for shift in 4..=16 {
        let alignment = 1_usize << shift;
        for (slots, multiple) in [(1, 1), (2, 3), (32, 1), (7, 5), (100, 2)] {
            let bytes = multiple * alignment;
            for stagger in [true, false] {
                let what = format!("{slots} of {bytes} bytes, aligned to {alignment}, stagger {stagger}");
                let builder = Builder::new().capacity(slots * bytes).slots(slots).alignment(alignment);
                let builder = builder.stagger(stagger);
                let required = builder.required_bytes().expect("settings are right");
                let gaps = if alignment > 64 { 0 } else { 128 };
                let beside = required - slots * bytes;
                assert!(
                    beside <= (64 + 8 + gaps) * (slots + 1) + 2 * alignment + 512,
                    "{what}: {beside} beside"
                );
                for skip in [0, 1, 63] {
                    let region = Region::from_static(&mut leaked(required + skip)[skip..]);
                    let mut pool = builder.build_in(region, NoFallback).expect("as many bytes are required");
                    for _ in 0..2 {
                        let held: Vec<_> = (0..slots).map_while(|_| pool.acquire(bytes).ok()).collect();
                        assert_eq!(held.len(), slots, "{what}");
                        assert!(held.iter().all(|buf| buf.as_ptr().addr() % alignment == 0), "{what}");
                    }
                }
            }
        }
    }
}

/// A mapping of 33 pages has 32 for buffers.
#[test]
fn a_page_for_the_bookkeeping_and_thirty_two_for_buffers() {
    let region = Region::heap(33 * 4096, 4096).expect("the heap has room");
    let mut pool =
        Builder::new().slots(32).alignment(4096).build_in(region, NoFallback).expect("room enough");
    let pages: Vec<_> = std::iter::from_fn(|| pool.acquire(4096).ok()).collect();
    assert_eq!((pages.len(), pool.capacity()), (32, 32 * 4096));
}

/// A buffer of one pool is in no slot of another.
#[test]
fn slots_of_other_pools() {
    let mut first = SlotPool::new(100, 2).expect("right");
    let mut second = SlotPool::new(100, 2).expect("right");
    let (a, b) = (first.acquire(1).expect("room"), second.acquire(1).expect("room"));
    assert_eq!((first.slot_of(&a), second.slot_of(&b)), (Some(0), Some(0)));
    assert_eq!((first.slot_of(&b), second.slot_of(&a)), (None, None));
}

/// A pool built on a kernel mapping lives in it alone.
#[cfg(feature = "mmap")]
#[test]
fn mapped_regions() {
    let region = Region::mapped(1, bufcore::MapOptions::new()).expect("a page");
    assert!(region.len() >= 4096 && !region.is_static());
    let mut pool = Builder::new().build_in(region, NoFallback).expect("room enough");
    let capacity = pool.capacity();
    let mut buf = pool.acquire(capacity).expect("all of it");
    buf.resize(capacity, 7).expect("asked for");
    drop(pool);
    assert!(buf.iter().all(|&byte| byte == 7));
}

/// Unless they are set, there is a slot for each KiB, of the capacity or of the region.
#[test]
fn slots_follow_the_bytes() {
    let slots =
        |capacity| SlotPool::builder().capacity(capacity).build().expect("settings are right").slots();
    assert_eq!([1, 8 << 10, 20_000, 1 << 20, 8 << 20].map(slots), [8, 8, 19, 1024, 1024]);
    let builder = SlotPool::builder().capacity(20_000).slots(3);
    assert_eq!(builder.build().expect("settings are right").slots(), 3);
    let over = |bytes, builder: Builder| {
        let region = Region::heap(bytes, 64).expect("the heap has room");
        builder.build_in(region, NoFallback).expect("settings are right").slots()
    };
    assert_eq!([1000, 64 << 10].map(|bytes| over(bytes, Builder::new())), [8, 64]);
    // The capacity comes first.
    let builder = Builder::new().capacity(64 << 10).stagger(false);
    let bytes = builder.slots(8).required_bytes().expect("settings are right");
    assert_eq!(over(bytes, builder), 8);
}

/// A burst of a thousand small buffers needs no settings.
#[test]
fn a_burst_by_default() {
    let mut pool = SlotPool::builder().build().expect("settings are right");
    let bufs: Vec<_> = (0..1024).map(|_| pool.acquire(64).expect("room")).collect();
    assert!(bufs.iter().all(|buf| !buf.lease().is_fallback()));
}
