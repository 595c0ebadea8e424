//! What the ring does turn by turn: exact fits, splits, merges, wraps, and blocks that are held.

use bufcore::{AcquireError, Buf};
use bufring::{RingLease, RingPool, Writer};
use testkit::trials::room;

/// A ring for exactly `buffers` buffers of `bytes` bytes.
fn ring(buffers: usize, bytes: usize) -> RingPool {
    RingPool::builder().capacity(buffers * bytes).buffers(buffers).build().expect("settings are right")
}

fn take(ring: &mut RingPool, bytes: usize) -> Buf<RingLease> {
    let mut buf = ring.acquire(bytes).expect("room");
    buf.resize(bytes, bytes as u8).expect("asked for");
    buf
}

fn address(buf: &Buf<RingLease>) -> usize {
    buf.as_ptr().addr()
}

#[test]
fn as_many_as_were_planned() {
    for (buffers, bytes) in [(1, 1), (2, 1), (7, 1), (4, 16), (100, 17), (64, 64), (8, 4096)] {
        let mut ring = ring(buffers, bytes);
        for round in 0..5 {
            let mut bufs: Vec<_> = (0..buffers).map(|_| take(&mut ring, bytes)).collect();
            // And then until it says that it is full.
            let error = loop {
                match ring.acquire(bytes) {
                    Ok(buf) => bufs.push(buf),
                    Err(error) => break error,
                }
            };
            assert!(
                matches!(error, AcquireError::Exhausted { requested, .. } if requested == bytes),
                "{buffers} of {bytes} bytes, round {round}: {error}"
            );
            assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == bytes as u8)));
        }
    }
}

/// The newest memory is used again first.
#[test]
fn exact_fits_go_back() {
    let mut ring = ring(10, 100);
    let first = address(&take(&mut ring, 100));
    for bytes in [100, 97, 112] {
        assert_eq!(address(&take(&mut ring, bytes)), first);
    }
    // Three at a time, in any order of their return, are at the same three places.
    let places = |bufs: &[Buf<RingLease>]| bufs.iter().map(address).collect::<Vec<_>>();
    let mut bufs: Vec<_> = (0..3).map(|_| take(&mut ring, 100)).collect();
    let before = places(&bufs);
    for order in [[0, 0, 0], [2, 1, 0], [1, 0, 0], [0, 1, 0]] {
        order.into_iter().for_each(|index| drop(bufs.remove(index)));
        bufs = (0..3).map(|_| take(&mut ring, 100)).collect();
        assert_eq!(places(&bufs), before, "{order:?}");
    }
}

#[test]
fn blocks_are_split_and_merged() {
    let mut ring = RingPool::new(1024 - 16).expect("settings are right");
    let capacity = ring.capacity();
    drop(take(&mut ring, capacity));
    // Split into sixteen, then merged by twos, and all together again.
    for bytes in [48, 112, 240, capacity] {
        let bufs: Vec<_> = std::iter::from_fn(|| ring.acquire(bytes).ok()).collect();
        assert_eq!(bufs.len(), (capacity + 16) / (bytes + 16), "of {bytes} bytes");
    }
    // Free blocks between two that are held are merged, and no more.
    let bufs: Vec<_> = (0..16).map(|_| take(&mut ring, 48)).collect();
    let held: Vec<_> = bufs.into_iter().enumerate().filter(|(index, _)| index % 4 == 0).collect();
    let between: Vec<_> = std::iter::from_fn(|| ring.acquire(3 * 64 - 16).ok()).collect();
    assert_eq!(between.len(), 4);
    assert!(ring.acquire(1).is_err());
    assert!(held.iter().all(|(_, buf)| buf.iter().all(|&byte| byte == 48)));
}

/// A queue goes round and round: the oldest goes when the newest comes.
#[test]
fn a_queue_wraps() {
    for sizes in [&[100][..], &[100, 30], &[1, 200, 33, 64, 5]] {
        let mut ring = RingPool::new(1 << 12).expect("settings are right");
        let mut queue = std::collections::VecDeque::new();
        let mut highest = 0;
        let mut wraps = 0;
        for round in 0..5000 {
            let buf = take(&mut ring, sizes[round % sizes.len()]);
            wraps += usize::from(address(&buf) < highest);
            highest = address(&buf);
            queue.push_back(buf);
            if queue.len() > 8 {
                let oldest = queue.pop_front().expect("nine");
                assert!(oldest.iter().all(|&byte| usize::from(byte) == oldest.len()));
            }
        }
        assert!(wraps > 50, "{wraps} wraps");
    }
}

/// Buffers that are held are stepped over, at every distance.
#[test]
fn held_buffers_do_not_jam() {
    for held in [1, 2, 100, 127] {
        let mut ring = ring(2 * held + 10, 64);
        let mut all: Vec<_> = (0..2 * held).map(|_| take(&mut ring, 64)).collect();
        // Every other one stays.
        let mut index = 0;
        all.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        let mut queue = std::collections::VecDeque::new();
        for _ in 0..10_000 {
            queue.push_back(take(&mut ring, 64));
            if queue.len() > 5 {
                assert_eq!(queue.pop_front().expect("six")[..], [64; 64]);
            }
        }
        assert!(all.iter().all(|buf| buf[..] == [64; 64]));
    }
}

/// However many blocks are held in a row, a request finds the one that is free behind them.
#[test]
fn a_search_goes_all_the_way_round() {
    let mut ring = ring(1010, 64);
    let first = take(&mut ring, 64);
    let held: Vec<_> = (0..1000).map(|_| take(&mut ring, 64)).collect();
    let rest: Vec<_> = std::iter::from_fn(|| ring.acquire(64).ok()).collect();
    assert!(rest.len() >= 9);
    drop(first);
    // The one free block is a thousand live ones away.
    assert!(ring.acquire(64).is_ok(), "one is free");
    assert_eq!(held.len(), 1000);
}

/// Going back to the first of many does not lose the place where there is more room.
#[test]
fn back_to_the_front_and_on_again() {
    let mut ring = ring(2000, 64);
    let front = take(&mut ring, 64);
    let held: Vec<_> = (0..1000).map(|_| take(&mut ring, 64)).collect();
    let newest = take(&mut ring, 64);
    drop((front, newest));
    for round in 0..100 {
        let pair = [ring.acquire(64), ring.acquire(64), ring.acquire(64)];
        assert!(pair.iter().all(Result::is_ok), "round {round}");
    }
    assert_eq!(held.len(), 1000);
}

#[test]
fn errors_carry_the_numbers_of_the_call() {
    let mut ring = ring(4, 100);
    let limit = ring.capacity();
    for requested in [limit + 1, usize::MAX / 2, usize::MAX - 40, usize::MAX] {
        assert_eq!(ring.acquire(requested).err(), Some(AcquireError::TooLarge { requested, limit }));
    }
    let buf = take(&mut ring, 200);
    let refused = ring.acquire(limit).err();
    let available = limit - 208 - 16;
    assert_eq!(refused, Some(AcquireError::Exhausted { requested: limit, available }));
    assert_eq!(ring.acquire(available).map(|buf| buf.capacity()), Ok(available));
    drop(buf);
    assert_eq!(ring.stats().exhausted, u64::from(cfg!(feature = "stats")));
    assert_eq!((ring.stats().in_use, ring.stats().reserved_bytes), (0, limit));
}

/// Statistics and tracker say what is stuck.
#[test]
fn what_is_stuck_can_be_seen() {
    let mut ring = ring(100, 64);
    for _ in 0..3 {
        std::mem::forget(take(&mut ring, 64));
        drop(take(&mut ring, 64));
    }
    let stats = ring.stats();
    assert_eq!(stats.in_use, 3);
    assert!(format!("{ring:?}").contains("blocks_out: 3, bytes_out: 192"), "{ring:?}");
    #[cfg(feature = "track")]
    {
        let stuck = ring.outstanding();
        assert_eq!(stuck.len(), 3);
        assert!(stuck.iter().all(|one| one.capacity == 64 && one.location.file().ends_with("turns.rs")));
    }
    let ring = ring.into_region().expect_err("three are out");
    assert!(!ring.is_idle());
}

#[test]
fn a_large_ring_stays_small() {
    const BYTES: usize = 8 << 20;
    let ring = RingPool::builder().capacity(BYTES).buffers(8).build().expect("settings are right");
    room::a_large_region_is_used_little(ring, BYTES);
}

#[test]
fn a_large_ring_stays_small_with_frames() {
    let ring = RingPool::builder().build().expect("settings are right");
    let capacity = ring.capacity();
    room::frames_use_a_large_region_little(ring, capacity);
}

/// A request for a little more than one of the buffers, so that the next one leaves less than a
/// buffer has room in.
#[test]
fn promised_buffers_fit_after_an_odd_request() {
    for odd in 1..300 {
        let mut ring = ring(3, 100);
        drop(ring.acquire(odd).expect("room"));
        let three: Vec<_> = (0..3).map_while(|_| ring.acquire(100).ok()).collect();
        assert_eq!(three.len(), 3, "after a request of {odd}");
    }
}

/// Whatever came before, an idle ring has room for as many equal buffers as it was built for, also
/// when they are released and acquired again in any order.
#[test]
fn promised_buffers_fit_an_idle_ring() {
    for seed in 0..40_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = if seed % 64 == 0 { random.usize(65..200) } else { random.usize(1..=8) };
        let sizes = [100, 225, 1000, 2017, 4000, 4065, 8161, 20_000];
        let bytes = *random.choice(sizes.iter()).expect("some");
        let alignment = *random.choice([1, 64, 512].iter()).expect("some");
        let builder = RingPool::builder().capacity(n * bytes).buffers(n).alignment(alignment);
        let mut ring = builder.build().expect("settings are right");
        let mut held = Vec::new();
        let mut steps = Vec::new();
        for _ in 0..random.usize(..3 * n + 3) {
            if !held.is_empty() && random.bool() {
                let index = random.usize(..held.len());
                steps.push(-(index as isize));
                drop(held.swap_remove(index));
            } else {
                let size = if random.bool() { bytes } else { random.usize(1..=bytes) };
                steps.push(size as isize);
                held.extend(ring.acquire(size));
            }
        }
        held.clear();
        assert!(ring.is_idle());
        if random.u8(..4) == 0 {
            ring.trim();
        }
        for step in 0..3 * n {
            if held.len() == n {
                held.swap_remove(random.usize(..n));
            }
            match ring.acquire(bytes) {
                Ok(buf) => held.push(buf),
                Err(error) => {
                    panic!("seed {seed} step {step}: {} of {n} after {steps:?}: {error}", held.len())
                }
            }
        }
    }
}

/// Small sizes, and sizes of which a number takes about the first 16 KiB, behind which a new ring
/// ends: some leave a single unit there. Acquired, as frames, and extended; in a new ring, after
/// a request, and after trims.
#[test]
fn promised_buffers_fit_around_the_first_end() {
    let sizes = |n: usize| (1..=80).chain((16_000 / n..17_000 / n).step_by(if n < 5 { 13 } else { 5 }));
    let counts = [2, 3, 4, 5, 8, 9, 17, 33, 65, 100];
    let mut kinds = (0_usize..).map(|index| (index % 4, index / 4 % 3));
    let grid =
        counts.iter().flat_map(|&n| sizes(n).chain([225, 2017, 4065, 4066, 8161]).map(move |s| (n, s)));
    let mut missing = Vec::new();
    for (n, bytes) in grid {
        for alignment in [1, 32, 64, 256, 512, 4096] {
            let builder = RingPool::builder().capacity(n * bytes).buffers(n).alignment(alignment);
            for (before, by) in kinds.by_ref().take(if alignment == 1 { 12 } else { 1 }) {
                let mut ring = builder.build().expect("settings are right");
                match before {
                    0 => {}
                    1 => drop(ring.acquire(bytes).expect("room")),
                    2 => ring.trim(),
                    _ => {
                        drop(ring.acquire(bytes).expect("room"));
                        ring.trim();
                    }
                }
                let mut held = Vec::new();
                let result = (0..n).try_for_each(|_| {
                    held.push(match by {
                        0 => ring.acquire(bytes)?,
                        _ => {
                            let mut line = Writer::new(&mut ring);
                            line.extend_from_slice(&vec![1; bytes])?;
                            line.finish()
                        }
                    });
                    Ok::<_, AcquireError>(())
                });
                if let Err(error) = result {
                    missing.push(format!("{builder}: {} of {n}, {before} {by}: {error}", held.len()));
                }
            }
        }
    }
    let shown = missing.len().min(12);
    assert!(missing.is_empty(), "{} rings lack room:\n{}", missing.len(), missing[..shown].join("\n"));
}
