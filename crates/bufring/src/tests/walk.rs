//! Walks over random requests that check the invariants of `ring` and `pool` after every step.

use alloc::vec::Vec;

use bufcore::{Buf, Writer};

use crate::{RingLease, RingPool, RingVec};

/// What is out, with the byte that all of it has.
enum Held {
    Buf(Buf<RingLease>),
    Words(RingVec<u64>),
}

impl Held {
    fn check(&self, stamp: u8, what: &str) {
        match self {
            Self::Buf(buf) => assert!(buf.iter().all(|&byte| byte == stamp), "{what}"),
            Self::Words(words) => {
                assert!(words.iter().all(|&word| word == u64::from(stamp)), "{what}")
            }
        }
    }
}

/// Fills a buffer in steps.
fn write(ring: &mut RingPool, random: &mut fastrand::Rng, stamp: u8, held: &mut Vec<(Held, u8)>) {
    let mut writer = Writer::with_capacity(ring, random.usize(..60));
    let mut len = 0;
    for _ in 0..random.usize(..6) {
        let n = random.usize(..100);
        if writer.extend_from_slice(&[stamp; 100][..n]).is_ok() {
            len += n;
        }
        assert_eq!(writer.filled().len(), len);
    }
    assert!(writer.filled().iter().all(|&byte| byte == stamp));
    if random.usize(..4) > 0 {
        held.push((Held::Buf(writer.finish()), stamp));
    }
}

fn walk(seed: u64, capacity: usize, largest: usize, alignment: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ring = RingPool::builder().capacity(capacity).alignment(alignment).build().unwrap();
    let mut held: Vec<(Held, u8)> = Vec::new();
    let mut served = 0;
    for step in 0..2500_usize {
        let what = alloc::format!("seed {seed} step {step}");
        let stamp = step as u8;
        match random.usize(..12) {
            0..=3 => {
                if let Ok(mut buf) = ring.acquire(1 + random.usize(..largest)) {
                    buf.resize(buf.capacity(), stamp).expect("within the capacity");
                    assert_eq!(buf.as_ptr().addr() % alignment, 0, "{what}");
                    held.push((Held::Buf(buf), stamp));
                    served += 1;
                }
            }
            4..=6 if !held.is_empty() => {
                let (one, stamp) = held.swap_remove(random.usize(..held.len()));
                one.check(stamp, &what);
            }
            7 if !held.is_empty() => {
                let (newest, stamp) = held.pop().unwrap();
                newest.check(stamp, &what);
            }
            8 => {
                if let Ok(mut words) = ring.acquire_vec::<u64>(random.usize(..1 + largest / 8)) {
                    while words.push(u64::from(stamp)).is_ok() {}
                    held.push((Held::Words(words), stamp));
                }
            }
            9 => write(&mut ring, &mut random, stamp, &mut held),
            10 if !held.is_empty() => {
                let at = random.usize(..held.len());
                let (Held::Buf(buf), stamp) = &mut held[at] else { continue };
                let bytes = random.usize(..largest);
                if random.bool() {
                    buf.consume(random.usize(..=buf.len()));
                }
                if ring.grow(buf, bytes).is_ok() {
                    assert!(buf.spare_capacity() >= bytes, "{what}");
                    assert!(buf.iter().all(|byte| byte == stamp), "{what}");
                    buf.resize(buf.capacity(), *stamp).expect("within the capacity");
                }
            }
            11 if !held.is_empty() => {
                let at = random.usize(..held.len());
                let (Held::Buf(buf), _) = &mut held[at] else { continue };
                buf.truncate(random.usize(..=buf.len()));
                ring.shrink(buf);
            }
            _ => {}
        }
        match random.usize(..8) {
            // What a trim does, where no pages go back.
            0 => ring.merge_all(),
            1 => ring.trim(),
            _ => {}
        }
        ring.check();
        for (one, stamp) in &held {
            one.check(*stamp, &what);
        }
    }
    assert!(served > 100, "seed {seed}: only {served} requests were served");
    drop(held);
    assert!(ring.is_idle(), "seed {seed}");
    // After all that, the whole region is there again.
    assert_eq!(ring.acquire(ring.capacity()).unwrap().capacity(), ring.capacity());
    ring.check();
}

#[test]
fn invariants_hold_on_random_walks() {
    for seed in 1..=if cfg!(debug_assertions) { 3 } else { 12 } {
        walk(seed, 512, 64, 1);
        walk(seed, 2000, 300, 1);
        walk(seed, 4096, 200, 64);
        walk(seed, 8192, 4000, 1);
        walk(seed, 1 << 16, 100, 16);
        // More than a ring begins with.
        walk(seed, 40 << 10, 18_000, 1);
        // Guards of a whole alignment.
        walk(seed, 1 << 15, 4000, 512);
        walk(seed, 1 << 17, 20_000, 4096);
    }
}

/// The newest block is taken again where it is, though free blocks stand in front of where a search
/// went past a live one, which has come back since.
#[test]
fn reuse_goes_back_once() {
    let mut ring = RingPool::new(1000).unwrap();
    let mut all: Vec<_> = core::iter::from_fn(|| ring.acquire(100).ok()).collect();
    drop(all.remove(2));
    let again = ring.acquire(100).expect("one was released");
    drop((all, again));
    let first = ring.acquire(100).unwrap().as_ptr();
    for _ in 0..3 {
        assert!(!ring.goes_back());
        assert_eq!(ring.acquire(100).unwrap().as_ptr(), first);
    }
}
