//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing
//! aborts. A ring allocates once.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]

use bufcore::{ConfigError, RegionError};
use bufring::{LocalAcquire, LocalError, LocalRing, RingPool, Writer};
use testkit::alloc::Failing;
use testkit::append::Append;
use testkit::pattern;
use testkit::trials::refusals;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

#[test]
fn construction() {
    let (built, refused) = Failing::after(0, || RingPool::new(4096).map(drop));
    assert!(
        matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { requested })) if requested > 4096)
    );
    assert_eq!(refused, 1);
    let (built, refused) = Failing::after(1, || RingPool::new(4096).map(drop));
    assert!(built.is_ok() && refused == 0, "a ring is one allocation");
}

/// A thread's ring that cannot be had now can be had later.
#[test]
fn thread_local_construction() {
    thread_local! {
        static RING: LocalRing = const { LocalRing::new(4096) };
    }
    let (first, refused) = Failing::after(0, || RING.acquire(100).map(drop));
    assert!(matches!(first, Err(LocalError::Config(ConfigError::Region(RegionError::OutOfMemory { .. })))));
    assert_eq!(refused, 1);
    assert!(RING.acquire(100).is_ok());
}

/// Everything that a ring can do, with no allocation allowed.
#[test]
fn a_program_without_allocations() {
    let mut ring = RingPool::new(1 << 16).expect("there is room");
    let ((), refused) = Failing::after(0, || {
        let mut failures = 0;
        let mut held = refusals::fill_all(&mut ring, [1500; 6], &mut failures);
        assert_eq!(failures, 0);
        // A frame that grows past a buffer that is in its way.
        let mut writer = Writer::new(&mut ring);
        let mut filled = 0;
        for bytes in [100, 2000, 5000, 20_000] {
            pattern::fill(writer.append(bytes).expect("room"), 9, filled);
            filled += bytes;
            drop(held[filled % 6].take());
        }
        let frame = writer.finish();
        pattern::check(&frame, 9, 0);
        for part in frame.chunks(700).take(20) {
            writer.extend_from_slice(part).expect("room");
        }
        pattern::check(&writer.finish(), 9, 0);
        let mut words = ring.acquire_vec::<u64>(100).expect("room");
        while words.push(1).is_ok() {}
        assert_eq!(words.into_iter().sum::<u64>(), 100);
        // Freezing, cloning and slicing need no memory.
        let view = frame.freeze();
        let parts = [view.clone(), view.slice(..filled / 2)];
        drop(view);
        pattern::check(&parts[0], 9, 0);
        refusals::check_all(&held);
    });
    assert_eq!(refused, 0, "a ring calls the allocator");
    assert!(ring.is_idle());
}
