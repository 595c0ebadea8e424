//! Walks over random requests that check the pool's invariants (`pool`, P1 to P4) after every step.

use alloc::vec::Vec;

use bufcore::{Buf, Lease, NoFallback, Writer};

use crate::{Builder, SlotPool};

fn fill<L: Lease>(buf: &mut Buf<L>, stamp: u8) {
    buf.clear();
    buf.resize(buf.capacity(), stamp).expect("within the capacity");
}

/// At least `kept` buffers stay out, once there are as many.
fn walk(seed: u64, slots: usize, capacity: usize, alignment: usize, kept: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pool: SlotPool<NoFallback> =
        Builder::new().slots(slots).capacity(capacity).alignment(alignment).build_with(NoFallback).unwrap();
    let mut held = Vec::new();
    let (mut served, mut crowded) = (0, 0);
    for step in 0..4000_usize {
        let stamp = step as u8;
        match random.usize(..10) {
            0..=2 => {
                if let Ok(mut buf) = pool.acquire(1 + random.usize(..2 * capacity / slots)) {
                    fill(&mut buf, stamp);
                    assert_eq!(buf.as_ptr().addr() % alignment, 0, "seed {seed} step {step}");
                    held.push((buf, stamp));
                    served += 1;
                }
            }
            3..=5 if held.len() > kept => {
                let (buf, stamp) = held.swap_remove(random.usize(..held.len()));
                assert!(buf.iter().all(|&byte| byte == stamp), "seed {seed} step {step}");
            }
            6 if held.len() > kept => {
                // The newest, so that the tail is reclaimed.
                let (buf, stamp) = held.pop().unwrap();
                assert!(buf.iter().all(|&byte| byte == stamp), "seed {seed} step {step}");
            }
            7 if !held.is_empty() => {
                let at = random.usize(..held.len());
                let (buf, stamp) = &mut held[at];
                let bytes = random.usize(..capacity / slots + 2);
                if random.bool() {
                    buf.consume(random.usize(..=buf.len()));
                }
                if pool.grow(buf, bytes).is_ok() {
                    assert!(buf.spare_capacity() >= bytes, "seed {seed} step {step}");
                    assert!(buf.iter().all(|byte| byte == stamp), "seed {seed} step {step}");
                    buf.resize(buf.capacity(), *stamp).expect("within the capacity");
                    served += 1;
                }
            }
            8 if !held.is_empty() => {
                let at = random.usize(..held.len());
                let (buf, _) = &mut held[at];
                buf.truncate(random.usize(..=buf.len()));
                pool.shrink(buf);
            }
            9 => {
                let mut writer = Writer::new(&mut pool);
                for _ in 0..random.usize(..6) {
                    let bytes = [stamp; 600];
                    let _ = writer.extend_from_slice(&bytes[..random.usize(..capacity / slots + 2).min(600)]);
                }
                if random.bool() {
                    held.push((writer.finish(), stamp));
                }
            }
            _ => {}
        }
        match random.usize(..8 + kept) {
            // What a trim does, where no pages go back.
            0 => pool.widen_all(),
            1 => pool.trim(),
            _ => {}
        }
        pool.check();
        crowded += usize::from(pool.is_crowded());
        for (buf, stamp) in &held {
            assert!(buf.iter().all(|byte| byte == stamp), "seed {seed} step {step}");
        }
    }
    assert!(served > 100, "seed {seed}: only {served} requests were served");
    assert_eq!(crowded > 1000, kept > 0, "seed {seed}: crowded in {crowded} steps");
    drop(held);
    assert!(pool.is_idle());
    // After all that, the whole region is there again.
    assert_eq!(pool.acquire(pool.capacity()).unwrap().capacity(), pool.capacity());
}

#[test]
fn invariants_hold_on_random_walks() {
    for seed in 1..=if cfg!(debug_assertions) { 10 } else { 40 } {
        walk(seed, 8, 512, 1, 0);
        walk(seed, 8, 512, 16, 0);
        walk(seed, 1, 64, 1, 0);
        walk(seed, 100, 4096, 8, 0);
        walk(seed, 2, 8192, 64, 0);
        // More than a pool begins with.
        walk(seed, 400, 40 << 10, 8, 0);
    }
    // A crowd.
    for seed in 1..=3 {
        walk(seed, 200, 8192, 8, 100);
    }
    walk(1, 3, 33 << 10, 1, 0);
    walk(2, 30, 100 << 10, 64, 0);
}

/// However many free slots stand in front, going back is once: then the newest slot is taken again
/// where it is.
#[test]
fn reuse_goes_back_once() {
    for (count, kept) in [(1, false), (7, false), (7, true), (64, false), (64, true)] {
        let mut pool = SlotPool::new(1 << 16, 64).unwrap();
        let mut burst: Vec<_> = (0..count).map(|_| pool.acquire(100).unwrap()).collect();
        let kept = kept.then(|| burst.swap_remove(count / 2));
        drop(burst);
        let first = pool.acquire(100).unwrap().as_ptr();
        for _ in 0..3 {
            assert!(!pool.goes_back(), "after {count}, one kept: {}", kept.is_some());
            assert_eq!(pool.acquire(100).unwrap().as_ptr(), first);
        }
    }
}
