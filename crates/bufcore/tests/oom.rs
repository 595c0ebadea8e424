//! The allocator refuses a heap pool: an error, and nothing is lost.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(clippy::std_instead_of_alloc, reason = "tests have an operating system")]

use std::sync::Arc;
use std::time::Instant;

use bufcore::{AcquireError, HeapPool, Keeper, Pressure, PressureSource, Region, RegionError};
use buftest::alloc::Failing;
use buftest::trials::keeper::Nothing;

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

/// A source of pressure is read when memory is short: what has no memory is not known.
#[test]
fn pressure() {
    let root = std::env::temp_dir().join(format!("bufcore-oom-{}", std::process::id()));
    let files = [
        ("proc/self/cgroup", "0::/app\n4:memory:/app\n"),
        (
            "proc/self/mountinfo",
            "30 23 0:27 / /second rw - cgroup2 cgroup2 rw\n35 31 0:32 / /first rw - cgroup cgroup rw,memory\n",
        ),
        ("proc/pressure/memory", "some avg10=20.00\nfull avg10=1.00\n"),
        ("second/app/memory.current", "90\n"),
        ("second/app/memory.max", "100\n"),
        ("second/app/memory.pressure", "some avg10=20.00\nfull avg10=1.00\n"),
        ("first/app/memory.usage_in_bytes", "90\n"),
        ("first/app/memory.limit_in_bytes", "100\n"),
    ];
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }
    let source = PressureSource::under(&root);
    let all = source.read();
    assert!(all.memory.is_some() && all.stall.is_some(), "{all:?}");
    let (read, refused) = Failing::after(0, || source.read());
    assert!(read == Pressure::default() && refused > 0, "{read:?}, {refused} refused");
    for allowed in 1..20 {
        let _some = Failing::after(allowed, || source.read());
    }
    let _ = std::fs::remove_dir_all(root);
}

/// A keeper that is refused memory for its list looks at what it has, and at the rest later.
#[test]
fn keeper() {
    let pools: Vec<_> = (0..1001).map(|_| Arc::new(Nothing)).collect();
    let mut keeper = Keeper::new().pressure(PressureSource::none());
    let handle = keeper.handle();
    for pool in &pools[..1000] {
        handle.watch(pool);
    }
    let now = Instant::now();
    let (_, refused) = Failing::after(0, || keeper.tick(now));
    assert_eq!((keeper.watched(), refused), (0, 1));
    handle.watch(&pools[1000]);
    keeper.tick(now);
    assert_eq!(keeper.watched(), 1001);
}
