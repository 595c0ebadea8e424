//! Buffers over memory of others, so that all engines are read into by the same driver.

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
        // SAFETY: made by `acquire` below, and dropped once.
        drop(unsafe { Box::from_raw(self.owner.as_ptr()) });
    }
}

/// Takes memory of others for each buffer.
pub struct Foreign<F>(F);

impl<F> Foreign<F> {
    /// Buffers over what `take` returns: the start of as many bytes as it is asked for, with what keeps
    /// them.
    ///
    /// # Safety
    ///
    /// The bytes stay where they are while what keeps them is there, and nobody else uses them. Those that
    /// are not initialised are not looked at before something was read into them.
    unsafe fn new(take: F) -> Self {
        Self(take)
    }
}

impl<F> core::fmt::Debug for Foreign<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Foreign").finish_non_exhaustive()
    }
}

impl<M: Send + Sync + 'static, F: FnMut(usize) -> (*mut u8, M)> BufferPool for Foreign<F> {
    type Lease = ForeignLease<M>;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let (start, memory) = (self.0)(capacity);
        let owner = Box::new(Owner { views: RefCount::new(), _memory: memory });
        let lease = ForeignLease { owner: NonNull::from(Box::leak(owner)) };
        let start = NonNull::new(start).ok_or(AcquireError::OutOfMemory { requested: capacity })?;
        // SAFETY: valid and exclusive, as whoever called `new` promised. A driver takes the address of
        // the bytes, and counts those that the kernel has written. Nothing else here looks at them.
        Ok(unsafe { Buf::from_raw_parts(start, capacity, lease) })
    }

    fn max_capacity(&self) -> usize {
        isize::MAX as usize
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

/// A page, by which vectors are aligned.
#[repr(align(4096))]
#[derive(Debug, Clone, Copy)]
struct Page(#[allow(dead_code, reason = "what it is made of")] [u8; PAGE]);

/// Bytes that are asked for beyond those that are used, for the start to be aligned if need be.
fn spare(is_aligned: bool) -> usize {
    if is_aligned { PAGE } else { 0 }
}

/// The first byte that is used: `start`, or that of the next page.
fn first(start: *mut u8, is_aligned: bool) -> *mut u8 {
    start.wrapping_add(if is_aligned { start.addr().wrapping_neg() % PAGE } else { 0 })
}

/// A fresh vector for each buffer.
#[must_use]
pub fn fresh() -> impl BufferPool {
    let take = |capacity| {
        let mut vec = Vec::<u8>::with_capacity(capacity);
        (vec.as_mut_ptr(), vec)
    };
    // SAFETY: moving the vector does not move its bytes, which are read into first.
    unsafe { Foreign::new(take) }
}

/// A fresh vector of pages for each buffer.
#[must_use]
pub fn aligned() -> impl BufferPool {
    let take = |capacity: usize| {
        let mut vec: Vec<Page> = Vec::with_capacity(capacity.div_ceil(PAGE));
        (vec.as_mut_ptr().cast(), vec)
    };
    // SAFETY: as for `fresh`.
    unsafe { Foreign::new(take) }
}

/// A fresh vector of zeros for each buffer.
#[must_use]
pub fn zeroed(is_aligned: bool) -> impl BufferPool {
    let take = move |capacity| {
        let mut vec = vec![0_u8; capacity + spare(is_aligned)];
        (first(vec.as_mut_ptr(), is_aligned), vec)
    };
    // SAFETY: as for `fresh`; what is skipped was added.
    unsafe { Foreign::new(take) }
}

/// zeropool with its defaults, asked for memory that it does not zero: its fastest. The pool lives as
/// long as the program.
#[cfg(feature = "peers")]
#[must_use]
pub fn zeropool(is_aligned: bool) -> impl BufferPool {
    let pool: &'static zeropool::ZeroPool = Box::leak(Box::new(zeropool::ZeroPool::new()));
    let take = move |capacity| {
        let mut buf = pool.alloc_uninit(capacity + spare(is_aligned));
        (first(buf.as_uninit_mut().as_mut_ptr().cast(), is_aligned), buf)
    };
    // SAFETY: moving its buffer does not move the bytes, which are a vector's, and are read into first.
    // What is skipped was added.
    unsafe { Foreign::new(take) }
}
