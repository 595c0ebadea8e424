//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing aborts.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufcore::{AcquireError, BufferPool, ConfigError, FrameBuffer, RegionError};
use bufslot::SlotPool;
use buftest::alloc::Failing;
use buftest::pattern;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

#[test]
fn construction() {
    let (built, refused) = Failing::after(0, || SlotPool::new(4096, 8).map(drop));
    assert!(
        matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { requested })) if requested > 4096)
    );
    assert_eq!(refused, 1);
    let (built, refused) = Failing::after(1, || SlotPool::new(4096, 8).map(drop));
    assert!(built.is_ok() && refused == 0, "a pool is one allocation");
}

/// A program over everything that may allocate; returns how many of its steps failed.
fn program(pool: &mut SlotPool) -> usize {
    let mut failures = 0;
    // Two from the region, four from the heap.
    let mut held = [const { None }; 6];
    for (seed, place) in (0_u64..).zip(&mut held) {
        match pool.acquire(1500) {
            Ok(mut buf) => {
                pattern::fill(&mut buf.spare_mut()[..1500], seed, 0);
                buf.advance(1500);
                *place = Some(buf);
            }
            Err(error) => {
                assert_eq!(error, AcquireError::OutOfMemory { requested: 1500 });
                failures += 1;
            }
        }
    }
    // A frame that spills, and grows there twice.
    let mut filled = 0;
    for bytes in [100, 2000, 5000, 20_000] {
        match pool.writable(bytes) {
            Ok(room) => {
                pattern::fill(room, 9, filled);
                filled += bytes;
            }
            Err(error) => {
                assert_eq!(error, AcquireError::OutOfMemory { requested: bytes });
                failures += 1;
            }
        }
        assert_eq!(pool.filled().len(), filled);
        pattern::check(pool.filled(), 9, 0);
    }
    let frame = pool.detach().expect("never fails");
    assert_eq!(frame.len(), filled);
    pattern::check(&frame, 9, 0);
    for (seed, buf) in (0_u64..).zip(&held) {
        if let Some(buf) = buf {
            pattern::check(buf, seed, 0);
        }
    }
    // Freezing, cloning and slicing need no memory.
    let view = frame.freeze();
    let parts = [view.clone(), view.slice(..filled / 2)];
    drop(view);
    pattern::check(&parts[0], 9, 0);
    failures
}

#[test]
fn every_allocation_of_a_program() {
    for allowed in 0.. {
        let mut pool = SlotPool::new(4000, 8).expect("settings are right");
        let (failures, refused) = Failing::after(allowed, || program(&mut pool));
        assert!(failures <= refused, "{failures} failures of {refused} refusals");
        assert_eq!(failures == 0, refused == 0, "{failures} failures of {refused} refusals");
        // As good as new afterwards.
        assert!(pool.is_idle(), "a slot was lost by failure {allowed}");
        assert_eq!(program(&mut pool), 0);
        if refused == 0 {
            assert!(allowed >= 5, "the program allocates");
            return;
        }
    }
}
