//! Pools that share an arena.

use std::sync::Arc;

use bufcore::{HeapPool, HugePages, MapOptions, MemoryProvider, Region, RegionError};
use bufuring::Arena;

use crate::{arena, free_pages, pool_in};

#[test]
fn several_pools_share_an_arena() {
    let arena = Arena::mapped(8 << 20, MapOptions::new().populate(true)).expect("the system maps");
    let mut slots = pool_in(&arena, 4);
    let region = arena.part(64 << 10, 64).expect("there is room");
    let mut ring = bufring::Builder::new().build_in(region).expect("it is large enough");
    let source: Arc<dyn MemoryProvider> = Arc::new(arena.clone());
    let shards = bufshard::ShardPool::builder().build_from(Arc::clone(&source)).expect("it is made");
    let bumps = bufbump::BumpPool::builder().build_from(source).expect("it is made");

    let slot = slots.acquire(4096).expect("a page is free");
    let block = ring.acquire(1000).expect("the ring has room");
    let shard = shards.acquire(100_000).expect("the arena has room");
    let bump = bumps.acquire(1000).expect("the arena has room");
    let places = [
        (slot.as_ptr(), slot.capacity()),
        (block.as_ptr(), block.capacity()),
        (shard.as_ptr(), shard.capacity()),
        (bump.as_ptr(), bump.capacity()),
    ];
    for (start, len) in places {
        assert!(arena.contains(start, len), "{start:?} {len}");
    }
    let outside = HeapPool::new().acquire(1).expect("the heap has room");
    assert!(!arena.contains(outside.as_ptr(), 1));
}

/// An arena does not know what was in the memory that it is made of.
#[test]
fn t37_parts_of_a_used_region_are_zeroed() {
    let memory: &'static mut [u8] = Box::leak(vec![0xA5; 1 << 20].into());
    let arena = Arena::from_region(Region::from_static(memory));
    let pool = bufbump::BumpPool::builder().build_from(Arc::new(arena)).expect("it is made");
    // Larger than a shard: the pool asks for it alone, and takes its word.
    let buf = pool.acquire_zeroed(300_000).expect("the arena has room");
    assert!(buf.iter().all(|byte| *byte == 0));
}

#[test]
fn buffers_keep_the_arena() {
    let arena = arena();
    let mut pool = pool_in(&arena, 1);
    let mut buf = pool.acquire(4096).expect("a page is free");
    drop(arena);
    drop(pool);
    buf.extend_from_slice(&[3; 4096]).expect("there is room");
    assert!(buf.iter().all(|&byte| byte == 3));
}

#[test]
fn memory_comes_back_to_the_arena() {
    let arena = arena();
    let before = arena.spare_bytes();
    let mut pool = pool_in(&arena, 4);
    assert_eq!(free_pages(&mut pool), 4);
    assert!(arena.spare_bytes() < before);
    drop(pool);
    assert_eq!(arena.spare_bytes(), before);
}

#[test]
fn what_the_system_refuses_is_left_out() {
    // More huge pages than any administrator sets aside.
    let options = MapOptions::new().huge_pages(HugePages::Require);
    match Arena::mapped(1 << 40, options) {
        Ok(arena) => {
            assert!(matches!(arena.refused(), Some(RegionError::Refused { call: "mmap", .. })));
            assert_eq!(arena.granted(), MapOptions::new().huge_pages(HugePages::Advise));
        }
        // Not even ordinary ones: the system does not overcommit.
        Err(error) => assert!(matches!(error, RegionError::Refused { call: "mmap", .. }), "{error}"),
    }
    assert_eq!(Arena::mapped(0, options).expect_err("nothing cannot be mapped"), RegionError::Empty);
    assert!(matches!(Arena::mapped(usize::MAX, options), Err(RegionError::TooLarge { .. })));
}

#[test]
fn a_region_of_the_programs_own_is_an_arena() {
    let arena = Arena::from_region(Region::heap(1 << 20, 4096).expect("the heap has room"));
    let mut pool = pool_in(&arena, 2);
    assert_eq!(free_pages(&mut pool), 2);
    assert!(arena.refused().is_none() && !arena.is_empty());
}
