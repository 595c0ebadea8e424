//! Pools as allocators of collections: the trait `Allocator` of `allocator-api2`.
//!
//! ```text
//!  a buffer     | slack | lease, room | the collection's bytes | room |
//!               ^ start               ^ pointer, aligned              ^ start + capacity
//! ```
//!
//! # Invariants
//!
//! - A1: in front of each block in use is its `Header`, whose lease keeps the whole buffer. `room`
//!   bytes from the pointer on belong to it.
//! - A2: no other code uses the bytes of the buffer: it was decomposed, and is not a [`Buf`] again.
//! - A3: before the lease is dropped, all bytes from the header on that could have been written are
//!   zeroed, since a collection may have written uninitialised ones. Without that, the caller of
//!   [`PoolAllocator::without_zeroing`] has promised that it does not matter.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

pub use crate::SharedPool;
use crate::lease::guard::LeaseGuard;
use crate::{Buf, Lease};

mod traits;

/// Allocates the memory of collections from a pool: `Vec`, `Box` and hash maps whose bytes are in
/// the pool.
///
/// It implements `Allocator` of the crate `allocator-api2`, for that crate's own `Vec` and `Box`.
/// Each version has a trait of its own: `hashbrown` and others use version 0.2 (feature
/// `allocator-api2-0_2`); `cargo add allocator-api2` adds 0.4 (feature `allocator-api2-0_4`). If a
/// program enables the feature `nightly` of version 0.2, that trait is the standard library's, and
/// the program must be built with `RUSTFLAGS="--cfg bufcore_nightly"`. The pool must be a
/// [`SharedPool`]: a `BumpPool`, a `ShardPool`, or a pool of one thread in a `RefCell` or a
/// `Mutex`.
///
/// Ownership: each block keeps its own lease, in front of its bytes. A block therefore stays valid
/// after the allocator, its clones and the pool are dropped. Any thread may free it.
///
/// Units: a block takes its size, 16 bytes or more for the lease, and at most its alignment.
///
/// Contents: collections write padding and other uninitialised bytes, but a pool's memory must be
/// initialised. A block is therefore zeroed when it is freed.
///
/// Cost: an acquire and a release, and zeroing the block at each free. It fits few large blocks,
/// and bounded memory. A block grows and shrinks in place while it has the room, which is little
/// unless it was shrunk before.
///
/// Failure: it fails if the pool does. `try_reserve` returns that as an error; other methods of
/// collections abort.
///
/// ```
/// # #[cfg(feature = "allocator-api2-0_2")] {
/// use std::cell::RefCell;
///
/// use allocator_api2::boxed::Box;
/// use allocator_api2::vec::Vec;
/// use bufcore::HeapPool;
/// use bufcore::allocator::PoolAllocator;
///
/// let pool = PoolAllocator::new(RefCell::new(HeapPool::new()));
/// let mut numbers = Vec::with_capacity_in(100, &pool);
/// numbers.extend(0..100_u64);
/// let boxed = Box::new_in([7_u16; 32], &pool);
/// assert_eq!((numbers.iter().sum::<u64>(), boxed[0]), (4950, 7));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct PoolAllocator<P> {
    pool: P,
    keeps_bytes: bool,
}

/// What a block keeps of its buffer.
struct Header<L: Lease> {
    guard: LeaseGuard<L>,
    /// Bytes from the block's pointer to the end of its buffer.
    room: usize,
}

impl<L: Lease> Header<L> {
    const BYTES: usize = size_of::<Self>();

    /// The header of a block.
    ///
    /// # Safety
    ///
    /// `block` is the pointer of a block that is out, with leases of this kind.
    unsafe fn of(block: NonNull<u8>) -> NonNull<Self> {
        // SAFETY: the header lies there, in the same buffer (A1).
        unsafe { block.cast::<Self>().sub(1) }
    }
}

impl<P> PoolAllocator<P> {
    /// Makes an allocator over `pool`.
    ///
    /// Cost: nothing.
    #[must_use]
    pub const fn new(pool: P) -> Self {
        Self { pool, keeps_bytes: false }
    }

    /// Makes an allocator over `pool` that does not zero freed blocks.
    ///
    /// # Safety
    ///
    /// 1. While the pool's memory exists, no buffers are acquired from it except through this
    ///    allocator and its clones. In particular no other handle of the pool is used, and no other
    ///    pool uses it as a fallback.
    /// 2. The pool is not over a region or `MemoryProvider` whose memory other code reads after it
    ///    is returned.
    ///
    /// ```
    /// # #[cfg(feature = "allocator-api2-0_2")] {
    /// use std::cell::RefCell;
    ///
    /// use allocator_api2::vec::Vec;
    /// use bufcore::HeapPool;
    /// use bufcore::allocator::PoolAllocator;
    ///
    /// // SAFETY: the pool is new, has no other handle, and its memory is freed.
    /// let pool = unsafe { PoolAllocator::without_zeroing(RefCell::new(HeapPool::new())) };
    /// let list = Vec::<u8, _>::with_capacity_in(1 << 20, &pool);
    /// # assert!(list.is_empty());
    /// # }
    /// ```
    #[must_use]
    pub const unsafe fn without_zeroing(pool: P) -> Self {
        Self { pool, keeps_bytes: true }
    }

    /// Returns the pool, for example for its statistics.
    ///
    /// ```
    /// use std::cell::RefCell;
    ///
    /// use bufcore::allocator::PoolAllocator;
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let pool = PoolAllocator::new(RefCell::new(HeapPool::new()));
    /// assert_eq!(pool.pool().borrow().stats().in_use, 0);
    /// ```
    pub const fn pool(&self) -> &P {
        &self.pool
    }
}

impl<P: SharedPool> PoolAllocator<P> {
    /// Takes a block, or nothing for no bytes.
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let align = layout.align().max(align_of::<Header<P::Lease>>());
        let slack = Header::<P::Lease>::BYTES.checked_add(align - 1)?;
        let needed = layout.size().checked_add(slack)?;
        let buf = self.pool.acquire_shared(needed).ok()?;
        // A pool of the user's may return a smaller one.
        (buf.capacity() >= needed).then(|| Self::carve(buf, align))
    }

    /// Puts the header into the buffer, in front of an aligned pointer.
    ///
    /// `align` is a power of two, at least that of a header, and the buffer has room for a header
    /// and `align` bytes, less one.
    fn carve(buf: Buf<P::Lease>, align: usize) -> NonNull<u8> {
        let (start, _, capacity, guard) = buf.into_guard();
        let unaligned = start.addr().get() + Header::<P::Lease>::BYTES;
        let offset = unaligned.next_multiple_of(align) - start.addr().get();
        debug_assert!(offset <= capacity, "no room for a header");
        // SAFETY: at most a header and `align - 1` bytes, which the buffer has.
        let block = unsafe { start.add(offset) };
        // SAFETY: the offset is a header's bytes at least.
        let header = unsafe { block.cast::<Header<P::Lease>>().sub(1) };
        // SAFETY: the buffer's own bytes, which nobody else uses (A2); aligned, since the block is
        // and a header's size is a multiple of its alignment.
        unsafe { header.write(Header { guard, room: capacity - offset }) };
        block
    }

    /// Gives a block back, of some bytes.
    ///
    /// # Safety
    ///
    /// The block is out, of this allocator or a clone, and is not used again.
    unsafe fn give_back(&self, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        let header = unsafe { Header::<P::Lease>::of(block) };
        // SAFETY: initialised by `carve`, and read for the last time.
        let Header { guard, room } = unsafe { header.read() };
        if !self.keeps_bytes {
            let bytes = Header::<P::Lease>::BYTES + room;
            // SAFETY: the buffer has `room` bytes from the block on, and a header in front, and the
            // lease still keeps them (A1). Nobody else uses them (A2).
            unsafe { ptr::write_bytes(header.cast::<u8>().as_ptr(), 0, bytes) };
        }
        release(guard);
    }

    /// Whether a block of some bytes can be one of `layout` as it is.
    ///
    /// # Safety
    ///
    /// The block is out, of this allocator or a clone.
    unsafe fn fits(block: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller's promise.
        let header = unsafe { Header::<P::Lease>::of(block) };
        // SAFETY: initialised as long as the block is out (A1), and read only.
        let room = unsafe { header.as_ref() }.room;
        layout.size() <= room && block.addr().get().is_multiple_of(layout.align())
    }

    /// Moves a block of `old` to one of `new`, with as many bytes as both have.
    ///
    /// # Safety
    ///
    /// The block is out, of this allocator or a clone, with the layout `old`, and is not used again
    /// unless this returns `None`.
    unsafe fn relocate(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        let moved = self.take(new)?;
        let bytes = old.size().min(new.size());
        // SAFETY: both have that number of bytes, and are different memory (A2), or there are none.
        unsafe { block.copy_to_nonoverlapping(moved, bytes) };
        if old.size() != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.give_back(block) };
        }
        Some(moved)
    }

    /// Makes a block of `old` one of `new`, which is not smaller.
    ///
    /// # Safety
    ///
    /// As for [`relocate`](Self::relocate).
    unsafe fn enlarge(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise; a block of no bytes is none.
        if old.size() != 0 && unsafe { Self::fits(block, new) } {
            return Some(block);
        }
        // SAFETY: the caller's promise.
        unsafe { self.relocate(block, old, new) }
    }

    /// Makes a block of `old` one of `new`, which is not larger.
    ///
    /// # Safety
    ///
    /// As for [`relocate`](Self::relocate).
    unsafe fn reduce(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise; a block of no bytes is none.
        let fits = old.size() != 0 && new.size() != 0 && unsafe { Self::fits(block, new) };
        // A move that saves less than half is not worth its copy.
        if fits && new.size() > old.size() / 2 {
            return Some(block);
        }
        // SAFETY: the caller's promise.
        let moved = unsafe { self.relocate(block, old, new) };
        // Where the pool has nothing smaller, the block stays.
        moved.or(fits.then_some(block))
    }
}

/// Drops the lease. A collection may be in the middle of a move, so no panic gets out: such as one
/// of a waker that the release calls, or of a lease of the user's. Without `std` it ends the
/// program.
#[inline]
fn release<L: Lease>(guard: LeaseGuard<L>) {
    #[cfg(feature = "std")]
    let _ = crate::unwind::catch_user_panic(|| drop(guard));
    #[cfg(not(feature = "std"))]
    {
        /// A second panic, while the first unwinds.
        struct Unwound;

        impl Drop for Unwound {
            fn drop(&mut self) {
                panic!("the release of a block panicked");
            }
        }

        let unwound = Unwound;
        drop(guard);
        core::mem::forget(unwound);
    }
}

/// A pointer for no bytes, aligned.
fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is not zero.
    unsafe { NonNull::new_unchecked(ptr::without_provenance_mut(layout.align())) }
}

impl<P: fmt::Debug> fmt::Debug for PoolAllocator<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolAllocator").field("pool", &self.pool).finish_non_exhaustive()
    }
}
