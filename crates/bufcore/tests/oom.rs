//! The allocator refuses a heap pool: an error, and nothing is lost.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(clippy::std_instead_of_alloc, reason = "tests have an operating system")]

use bufcore::{AcquireError, HeapPool, Region, RegionError};
use testkit::alloc::Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

#[test]
fn heap_pool() {
    let mut pool = HeapPool::new();
    // A buffer of no bytes asks for no memory.
    let (result, refused) = Failing::after(0, || pool.acquire(0).and(pool.acquire_zeroed(0)).map(drop));
    assert_eq!((result, refused), (Ok(()), 0));
    for bytes in [1, 4096, 1 << 20] {
        let (result, refused) = Failing::after(0, || pool.acquire(bytes).map(drop));
        assert_eq!((result, refused), (Err(AcquireError::OutOfMemory { requested: bytes }), 1));
        let (result, _) = Failing::after(0, || pool.acquire_zeroed(bytes).map(drop));
        assert_eq!(result, Err(AcquireError::OutOfMemory { requested: bytes }));
        // One allocation a buffer; freezing, cloning, slicing and thawing need none.
        let (result, refused) = Failing::after(1, || {
            let mut buf = pool.acquire(bytes)?;
            buf.resize(bytes, 3).expect("asked for");
            let view = buf.freeze();
            let part = view.clone().slice(bytes / 2..);
            drop(view);
            part.try_into_mut().map(drop).expect("the only view");
            Ok::<_, AcquireError>(())
        });
        assert_eq!((result, refused), (Ok(()), 0));
    }
}

#[test]
fn regions() {
    for (bytes, alignment) in [(1, 1), (4096, 64), (1 << 20, 4096)] {
        let (result, refused) = Failing::after(0, || Region::heap(bytes, alignment).map(drop));
        assert_eq!((result, refused), (Err(RegionError::OutOfMemory { requested: bytes }), 1));
        let (region, refused) = Failing::after(1, || Region::heap(bytes, alignment));
        let region = region.expect("one allocation");
        assert_eq!((refused, region.len(), region.as_ptr().addr().get() % alignment), (0, bytes, 0));
        let make = |allowed| Failing::after(allowed, || Region::heap_aligned(bytes, alignment));
        assert!(matches!(make(0), (Err(RegionError::OutOfMemory { .. }), 1)));
        let (region, refused) = make(1);
        let region = region.expect("one allocation");
        assert_eq!((refused, region.len(), region.as_ptr().addr().get() % alignment), (0, bytes, 0));
    }
}
