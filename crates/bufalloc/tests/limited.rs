//! A limit on what the process has for large blocks, and upkeep by the program.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one promise is behind all of a block")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::time::Duration;

use bufalloc::{Large, Upkeep};

const LIMIT: usize = 16 << 20;

#[global_allocator]
static ALLOC: Large = Large::new().max_bytes(LIMIT).upkeep(Upkeep::Ticks).age(Duration::from_millis(10));

/// One test: the heap is the process's.
#[test]
fn a_limit_is_kept_and_ticks_give_back() {
    if cfg!(any(miri, not(any(unix, windows)))) {
        return;
    }
    let layout = Layout::from_size_align(1 << 20, 8).unwrap();
    // SAFETY: the size is not 0.
    let mut blocks: Vec<_> = (0..16).map(|_| unsafe { ALLOC.alloc(layout) }).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    // SAFETY: likewise.
    assert!(unsafe { ALLOC.alloc(layout) }.is_null(), "the limit");
    // SAFETY: likewise.
    assert!(unsafe { ALLOC.alloc_zeroed(layout) }.is_null(), "the limit");
    // SAFETY: its block, which stays.
    assert!(unsafe { ALLOC.realloc(blocks[0], layout, 2 << 20) }.is_null());
    let mut small = Vec::<u8>::new();
    assert!(small.try_reserve_exact(64 << 10).is_err() && small.try_reserve_exact(16 << 10).is_ok());
    assert!(small.try_reserve_exact(64 << 10).is_err(), "from below");
    assert_eq!(bufalloc::stats().resident_bytes, LIMIT);
    for block in blocks.drain(8..) {
        // SAFETY: its block.
        unsafe { ALLOC.dealloc(block, layout) };
    }
    // SAFETY: likewise; within the limit if the pages are moved and not copied.
    let grown = unsafe { ALLOC.realloc(blocks[0], layout, 9 << 20) };
    assert!(!grown.is_null() || cfg!(not(target_os = "linux")));
    if !grown.is_null() {
        let layout = Layout::from_size_align(9 << 20, 8).unwrap();
        // SAFETY: likewise.
        unsafe { ALLOC.dealloc(grown, layout) };
        blocks.remove(0);
    }
    let dirty = bufalloc::stats().dirty_bytes;
    assert!(dirty > 0);
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(bufalloc::stats().dirty_bytes, dirty, "nobody does it but the program");
    for _ in 0..3 {
        ALLOC.tick();
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(bufalloc::stats().dirty_bytes, 0);
    for block in blocks {
        // SAFETY: its block.
        unsafe { ALLOC.dealloc(block, layout) };
    }
    assert_eq!(bufalloc::stats().dirty_bytes, bufalloc::stats().resident_bytes);
    #[cfg(feature = "keeper")]
    a_keeper_gives_back();
}

#[cfg(feature = "keeper")]
fn a_keeper_gives_back() {
    use std::time::Instant;

    use bufkeeper::{Keeper, Watch};

    assert!(bufalloc::stats().dirty_bytes > 0);
    let watched = ALLOC.downgrade();
    assert!(watched.id().is_some() && watched.id() == Large::new().downgrade().id(), "one heap");
    watched.with(&mut |heap| {
        let (stats, pages) = (heap.stats().unwrap(), bufalloc::stats());
        assert_eq!((stats.reserved_bytes, stats.idle_bytes), (pages.resident_bytes, pages.dirty_bytes));
    });
    let mut keeper = Keeper::new().watch(&ALLOC);
    let mut now = Instant::now();
    for _ in 0..4 {
        now = keeper.tick(now);
    }
    assert_eq!(bufalloc::stats().dirty_bytes, 0);
}
