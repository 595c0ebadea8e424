//! Buffers over memory of others, so that all contestants are read into by the same driver.

use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats};

/// The bytes that direct reads want memory aligned to.
const PAGE: usize = 4096;

/// Memory of somebody else's, with the count that a buffer needs. A pool of this project has the count
/// beside its buffers; here it takes an allocation of some ten bytes.
struct Owner<M> {
    views: RefCount,
    _memory: M,
}

/// Keeps memory until it is dropped.
pub struct ForeignLease<M: Send + Sync + 'static> {
    owner: NonNull<Owner<M>>,
}

impl<M: Send + Sync> core::fmt::Debug for ForeignLease<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ForeignLease").finish_non_exhaustive()
    }
}

// SAFETY: it owns what it points to, which may be sent.
unsafe impl<M: Send + Sync> Send for ForeignLease<M> {}
// SAFETY: shared, it gives out the count only.
unsafe impl<M: Send + Sync> Sync for ForeignLease<M> {}

// SAFETY:
// - memory: the owner has it until the lease is dropped, and nobody else can reach it.
// - copies: a pointer, which is no unique one.
// - count: each memory has its own.
unsafe impl<M: Send + Sync> Lease for ForeignLease<M> {
    fn views(&self) -> Option<&RefCount> {
        // SAFETY: it is there until the lease is dropped.
        Some(unsafe { &self.owner.as_ref().views })
    }
}

impl<M: Send + Sync> Drop for ForeignLease<M> {
    fn drop(&mut self) {
        // SAFETY: made by `lend` below, and dropped once.
        drop(unsafe { Box::from_raw(self.owner.as_ptr()) });
    }
}

/// A buffer over `capacity` bytes at `start`, which `memory` keeps.
///
/// # Safety
///
/// The bytes stay where they are while `memory` is there, and nobody else uses them. Those that are
/// not initialised are not looked at before something was read into them.
unsafe fn lend<M: Send + Sync>(start: *mut u8, capacity: usize, memory: M) -> Option<Buf<ForeignLease<M>>> {
    let owner = Box::new(Owner { views: RefCount::new(), _memory: memory });
    let lease = ForeignLease { owner: NonNull::from(Box::leak(owner)) };
    let start = NonNull::new(start)?;
    // SAFETY: valid and exclusive, as the caller promises. A driver takes the address of the bytes, and
    // counts those that the kernel has written. Nothing else here looks at them.
    Some(unsafe { Buf::from_raw_parts(start, capacity, lease) })
}

/// A page, by which vectors are aligned.
#[repr(align(4096))]
#[derive(Debug, Clone, Copy)]
pub struct Page(#[allow(dead_code, reason = "what it is made of")] [u8; PAGE]);

/// A fresh vector for each buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fresh;

/// A fresh vector of pages for each buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aligned;

/// A fresh vector of zeros for each buffer. It has a page more for its start to be aligned, if need be.
#[derive(Debug, Clone, Copy)]
pub struct Zeroed {
    /// Whether the start has to be aligned.
    pub is_aligned: bool,
}

/// The bytes from `start` to the next page.
fn to_page(start: *const u8) -> usize {
    start.addr().wrapping_neg() % PAGE
}

const NO_MEMORY: AcquireError = AcquireError::OutOfMemory { requested: 0 };

impl BufferPool for Fresh {
    type Lease = ForeignLease<Vec<u8>>;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut vec = Vec::with_capacity(capacity);
        // SAFETY: moving the vector does not move its bytes.
        unsafe { lend(vec.as_mut_ptr(), capacity, vec) }.ok_or(NO_MEMORY)
    }

    fn max_capacity(&self) -> usize {
        isize::MAX as usize
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

impl BufferPool for Aligned {
    type Lease = ForeignLease<Vec<Page>>;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut vec: Vec<Page> = Vec::with_capacity(capacity.div_ceil(PAGE));
        // SAFETY: as above.
        unsafe { lend(vec.as_mut_ptr().cast(), capacity, vec) }.ok_or(NO_MEMORY)
    }

    fn max_capacity(&self) -> usize {
        isize::MAX as usize
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

impl BufferPool for Zeroed {
    type Lease = ForeignLease<Vec<u8>>;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut vec = vec![0; capacity + if self.is_aligned { PAGE } else { 0 }];
        let skip = if self.is_aligned { to_page(vec.as_ptr()) } else { 0 };
        let start = vec.as_mut_ptr().wrapping_add(skip);
        // SAFETY: as above; what is skipped was added.
        unsafe { lend(start, capacity, vec) }.ok_or(NO_MEMORY)
    }

    fn max_capacity(&self) -> usize {
        isize::MAX as usize
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

/// zeropool, asked for memory that it does not zero: its fastest.
#[cfg(feature = "peers")]
pub mod zero {
    use super::{AcquireError, Buf, BufferPool, ForeignLease, NO_MEMORY, PAGE, PoolStats, lend, to_page};

    /// A pool with its defaults.
    #[derive(Debug)]
    pub struct Zero {
        pool: &'static zeropool::ZeroPool,
        is_aligned: bool,
    }

    impl Zero {
        /// A pool that lives as long as the program.
        #[must_use]
        pub fn new(is_aligned: bool) -> Self {
            Self { pool: Box::leak(Box::new(zeropool::ZeroPool::new())), is_aligned }
        }
    }

    impl BufferPool for Zero {
        type Lease = ForeignLease<zeropool::BufUninit<'static>>;

        fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
            let mut buf = self.pool.alloc_uninit(capacity + if self.is_aligned { PAGE } else { 0 });
            let start: *mut u8 = buf.as_uninit_mut().as_mut_ptr().cast();
            let start = start.wrapping_add(if self.is_aligned { to_page(start) } else { 0 });
            // SAFETY: moving its buffer does not move the bytes, which are a vector's. What is skipped
            // was added.
            unsafe { lend(start, capacity, buf) }.ok_or(NO_MEMORY)
        }

        fn max_capacity(&self) -> usize {
            isize::MAX as usize
        }

        fn stats(&self) -> PoolStats {
            PoolStats::default()
        }
    }
}
