//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing
//! aborts.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufcore::{AcquireError, ConfigError, RegionError, Writer};
use bufslot::SlotPool;
use testkit::alloc::Failing;
use testkit::append::Append;
use testkit::pattern;
use testkit::trials::refusals;

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
    let held = refusals::fill_all(pool, [1500; 6], &mut failures);
    // A frame that spills, and grows there twice.
    let mut filled = 0;
    let mut writer = Writer::new(&mut *pool);
    for bytes in [100, 2000, 5000, 20_000] {
        match writer.append(bytes) {
            Ok(room) => {
                pattern::fill(room, 9, filled);
                filled += bytes;
            }
            Err(error) => {
                assert_eq!(error, AcquireError::OutOfMemory { requested: bytes });
                failures += 1;
            }
        }
        assert_eq!(writer.filled().len(), filled);
        pattern::check(writer.filled(), 9, 0);
    }
    let frame = writer.finish();
    assert_eq!(frame.len(), filled);
    pattern::check(&frame, 9, 0);
    refusals::check_all(&held);
    // Freezing, cloning and slicing need no memory.
    let view = frame.freeze();
    let parts = [view.clone(), view.slice(..filled / 2)];
    drop(view);
    pattern::check(&parts[0], 9, 0);
    failures
}

#[test]
fn every_allocation_of_a_program() {
    let make = || SlotPool::new(4000, 8).expect("settings are right");
    refusals::every_allocation(make, program, 5, 0, SlotPool::is_idle);
}
