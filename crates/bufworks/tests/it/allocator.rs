//! Collections whose memory is in pools, beside those of the standard library.
//!
//! Each trial runs on a pool of every strategy: those that threads share as they are, those of one
//! thread in a `RefCell` or a `Mutex`.

use std::cell::RefCell;
use std::sync::Mutex;

use allocator_api2::alloc::Allocator;
use bufworks::HeapPool;
use bufworks::bufcore::{SharedPool, allocator::PoolAllocator};

mod blocks;
mod collections;
mod memory;

/// Runs `$trial` on each kind of pool, with the name of the strategy.
macro_rules! on_all {
    ($trial:path) => {{
        $trial("shard", &crate::allocator::shard());
        $trial("bump", &crate::allocator::bump());
        $trial("slot", &crate::allocator::slot());
        $trial("ring", &crate::allocator::ring());
        $trial("heap", &crate::allocator::heap());
    }};
}
use on_all;

fn shard() -> PoolAllocator<bufworks::shard::ShardPool> {
    PoolAllocator::new(bufworks::shard::ShardPool::new().unwrap())
}

fn bump() -> PoolAllocator<bufworks::bump::BumpPool> {
    PoolAllocator::new(bufworks::bump::BumpPool::new().unwrap())
}

/// With its fallback.
fn slot() -> PoolAllocator<RefCell<bufworks::slot::SlotPool>> {
    PoolAllocator::new(RefCell::new(bufworks::slot::SlotPool::new(256 << 10, 64).unwrap()))
}

fn ring() -> PoolAllocator<Mutex<bufworks::ring::RingPool>> {
    PoolAllocator::new(Mutex::new(bufworks::ring::RingPool::new(8 << 20).unwrap()))
}

fn heap() -> PoolAllocator<RefCell<HeapPool>> {
    PoolAllocator::new(RefCell::new(HeapPool::new()))
}

/// What a collection takes.
trait Pool: Allocator {}

impl<P: SharedPool> Pool for PoolAllocator<P> {}
