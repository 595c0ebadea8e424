//! T23: the global allocator uses other rings, and ends them, in each of its calls in turn.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]

use bufring::RingPool;
use testkit::alloc::Reentrant;
use testkit::trials::reentry::Reentry;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// One after another: both count on the order in which pools are made.
#[test]
fn t23_the_allocator_comes_back_in() {
    let reentry = Reentry {
        allocator: &ALLOCATOR,
        make: || RingPool::builder().capacity(64 << 10).build().expect("room"),
        handle: |_| None,
        sizes: &[2000, 300, 60, 300, 300, 300],
        small: 100,
        more: |_| {},
    };
    reentry.everywhere();
    reentry.beside_each_other();
}
