//! How long memory stays, and what it is when it comes back.

use std::alloc::Layout;
use std::cell::RefCell;
use std::thread;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec;
use bufworks::NoFallback;
use bufworks::bufcore::allocator::PoolAllocator;
use bufworks::slot::{Builder, SlotPool};

fn bounded(bytes: usize) -> PoolAllocator<RefCell<SlotPool<NoFallback>>> {
    PoolAllocator::new(RefCell::new(Builder::new().capacity(bytes).build_with(NoFallback).unwrap()))
}

/// A block outlives the pool and the allocator that it came from.
#[test]
fn blocks_outlive_their_allocators() {
    let first = super::shard();
    let second = first.clone();
    let layout = Layout::from_size_align(5000, 64).unwrap();
    let block = first.allocate(layout).unwrap();
    drop(first);
    // SAFETY: the block is out, and nobody else uses it.
    unsafe { block.cast::<u8>().write_bytes(9, 5000) };
    // SAFETY: it is one of a clone's.
    unsafe { second.deallocate(block.cast(), layout) };
    // Of the pool of one thread, the last handle goes while its vector does.
    let mut list = Vec::new_in(super::slot());
    list.extend(0..1000_u32);
    let (start, len, capacity, pool) = {
        let mut list = std::mem::ManuallyDrop::new(list);
        let pool = std::ptr::from_ref(list.allocator());
        // SAFETY: the list is not used again, so its allocator is moved out once.
        (list.as_mut_ptr(), list.len(), list.capacity(), unsafe { pool.read() })
    };
    let moved = std::boxed::Box::new(pool);
    // SAFETY: the parts of the vector, whose allocator has moved.
    let list = unsafe { Vec::from_raw_parts_in(start, len, capacity, *moved) };
    assert!(list.iter().copied().eq(0..1000));
}

#[test]
fn collections_move_between_threads() {
    let pool = super::bump();
    let lists: std::vec::Vec<_> = (0..4)
        .map(|thread| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut list = Vec::new_in(pool);
                list.extend((0..10_000_u64).map(|number| number * thread));
                list
            })
        })
        .collect();
    for (thread, list) in lists.into_iter().enumerate() {
        let mut list = list.join().unwrap();
        list.push(1);
        assert_eq!(list[9999], 9999 * thread as u64);
    }
}

/// A vector writes padding, which is not initialised. What comes after it in the same memory may
/// look at all bytes.
#[test]
fn memory_comes_back_zeroed() {
    let pool = bounded(4096);
    for _ in 0..3 {
        let mut list = Vec::new_in(&pool);
        list.extend((0..100_u64).map(|number| (number as u8 | 1, u64::MAX - number)));
        list.truncate(3);
        list.shrink_to_fit();
        drop(list);
        let mut all = pool.pool().borrow_mut().acquire(3000).unwrap();
        assert!(all.spare_mut().iter().all(|&byte| byte == 0), "a collection's bytes were left");
    }
}

#[test]
fn a_full_pool_is_an_error() {
    let pool = bounded(4096);
    let mut list = Vec::new_in(&pool);
    list.extend_from_slice(&[1_u8; 2000]);
    assert!(list.try_reserve(1 << 20).is_err());
    assert_eq!(list[..], [1; 2000]);
    assert!(list.try_reserve(1000).is_err(), "both would have to be there at once");
    drop(list);
    Vec::<u8, _>::new_in(&pool).try_reserve(3000).unwrap();
}

/// What shrank in place grows there again.
#[test]
fn blocks_stay_where_they_have_room() {
    let pool = bounded(8192);
    let mut list = Vec::with_capacity_in(1000, &pool);
    list.extend_from_slice(&[7_u8; 600]);
    let start = list.as_ptr();
    list.shrink_to_fit();
    assert_eq!((list.as_ptr(), list.capacity()), (start, 600));
    list.reserve_exact(400);
    assert_eq!((list.as_ptr(), list.capacity()), (start, 1000));
    list.truncate(10);
    list.shrink_to_fit();
    assert_ne!(list.as_ptr(), start, "a tenth of a block is not worth the block");
    assert_eq!(list[..], [7; 10]);
}

#[test]
fn without_zeroing() {
    let pool = RefCell::new(Builder::new().capacity(64 << 10).build_with(NoFallback).unwrap());
    // SAFETY: the pool is new, and has no other handle; its memory goes back to the heap.
    let pool = unsafe { PoolAllocator::without_zeroing(pool) };
    for round in 0..100_u64 {
        let mut list = Vec::new_in(&pool);
        list.extend(round..round + 500);
        assert_eq!(list[499], round + 499);
    }
}
