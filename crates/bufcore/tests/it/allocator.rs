//! Blocks of pools of the user's: which panic, return less than was asked for, or are in use.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec;
use bufcore::author::RefCount;
use bufcore::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, Lease, NoFallback, PoolStats};
use bufcore::{SharedPool, allocator::PoolAllocator};

/// A lease whose release panics.
struct Panics(HeapLease);

// SAFETY: a copy of the other's promises.
unsafe impl Lease for Panics {
    fn views(&self) -> Option<&RefCount> {
        self.0.views()
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("a release panics");
    }
}

struct PanicPool(HeapPool);

impl BufferPool for PanicPool {
    type Lease = Panics;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Panics>, AcquireError> {
        let buf = self.0.acquire(capacity)?;
        // SAFETY: the wrapper says of itself what the lease says, and does not panic.
        Ok(unsafe { buf.map_lease(Panics) })
    }

    fn max_capacity(&self) -> usize {
        self.0.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

/// A vector that grows is in the middle of a move when the old block goes: a panic there would make
/// it free that block again.
#[test]
fn a_release_that_panics_does_not_unwind() {
    let pool = PoolAllocator::new(RefCell::new(PanicPool(HeapPool::new())));
    let mut list = Vec::new_in(&pool);
    for number in 0..1000_u32 {
        list.push(number);
    }
    list.truncate(3);
    list.shrink_to_fit();
    assert_eq!(list[..], [0, 1, 2]);
}

/// Lies about the room, or panics, as told.
struct Wrong {
    pool: HeapPool,
    panics: Rc<Cell<bool>>,
}

impl BufferPool for Wrong {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        assert!(!self.panics.get(), "a pool panics");
        // With bytes in it, too.
        self.pool.acquire_zeroed(capacity.saturating_sub(1))
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

#[test]
fn pools_that_lie_or_panic() {
    let panics = Rc::new(Cell::new(false));
    let pool = RefCell::new(Wrong { pool: HeapPool::new(), panics: Rc::clone(&panics) });
    let pool = PoolAllocator::new(pool);
    assert!(pool.allocate(Layout::new::<u64>()).is_err(), "a buffer that is too small");
    assert!(pool.allocate(Layout::new::<()>()).is_ok(), "no bytes are no request");
    panics.set(true);
    let mut list = Vec::<u8, _>::new_in(&pool);
    assert!(catch_unwind(AssertUnwindSafe(|| list.push(1))).is_err());
    assert!(list.is_empty() && list.capacity() == 0);
    let none = PoolAllocator::new(RefCell::new(NoFallback));
    assert!(none.allocate(Layout::new::<u8>()).is_err());
}

#[test]
fn pools_behind_pointers_and_in_use() {
    let pool = Rc::new(RefCell::new(HeapPool::new()));
    assert_eq!(pool.acquire_shared(10).unwrap().capacity(), 10);
    let in_use = pool.borrow_mut();
    let refused = pool.acquire_shared(10).map(drop);
    assert_eq!(refused, Err(AcquireError::Exhausted { requested: 10, available: 0 }));
    drop(in_use);
    let mut list = Vec::new_in(PoolAllocator::new(pool));
    list.push(1);
    let shared = PoolAllocator::new(Arc::new(std::sync::Mutex::new(HeapPool::new())));
    let mut other = Vec::new_in(shared.clone());
    other.push(2);
    assert_eq!(list[0] + other[0], 3);
    assert_eq!(format!("{shared:?}").split_once(' ').unwrap().0, "PoolAllocator");
}

/// Blocks of no bytes are no blocks, wherever they come from and go to.
#[test]
fn no_bytes() {
    let pool = PoolAllocator::new(RefCell::new(HeapPool::new()));
    let (none, some) = (Layout::from_size_align(0, 256).unwrap(), Layout::from_size_align(9, 32).unwrap());
    let block = pool.allocate(none).unwrap();
    assert_eq!((block.len(), block.cast::<u8>().addr().get() % 256), (0, 0));
    // SAFETY: the block is out, of this layout, and the new one is not smaller.
    let block = unsafe { pool.grow_zeroed(block.cast(), none, some) }.unwrap();
    // SAFETY: the block is out, and was zeroed.
    assert_eq!(unsafe { block.as_ref() }, [0; 9]);
    // SAFETY: the block is out, of this layout, and the new one is not larger.
    let block = unsafe { pool.shrink(block.cast(), some, none) }.unwrap();
    // SAFETY: the block is out, of this layout.
    unsafe { pool.deallocate(block.cast(), none) };
    assert_eq!(pool.pool().borrow().stats().in_use, 0);
}

/// The version that `cargo add` gives has a trait of its own.
#[cfg(feature = "allocator-api2-0_4")]
#[test]
fn collections_of_version_0_4() {
    let pool = PoolAllocator::new(RefCell::new(HeapPool::new()));
    let mut list = allocator_api2_0_4::vec::Vec::new_in(&pool);
    list.extend(0..1000_u32);
    let boxed = allocator_api2_0_4::boxed::Box::new_in([7_u16; 32], &pool);
    assert_eq!((list[999], boxed[31]), (999, 7));
    drop((list, boxed));
    assert_eq!(pool.pool().borrow().stats().in_use, 0);
}
