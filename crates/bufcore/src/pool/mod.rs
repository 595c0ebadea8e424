//! How a strategy is asked for memory.

pub(crate) mod config;
pub(crate) mod growth;
#[cfg(feature = "alloc")]
#[allow(clippy::disallowed_methods, reason = "this is where raw memory is taken and given back")]
pub(crate) mod heap;
mod methods;
pub(crate) mod shared_pool;
pub(crate) mod stats;
pub(crate) mod writer;

use crate::buf::split::empty_buf;
use crate::pool::growth::Growth;
use crate::{AcquireError, Buf, Lease, NoLease, PoolStats};

/// Serves whole buffers: every strategy is such a pool.
///
/// The methods take `&mut self`, as those of `std::io::Read` do. A pool that can be shared
/// implements the trait for `&Pool` too.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{AcquireError, Buf, BufferPool, HeapPool};
///
/// /// Works with every strategy.
/// fn greeting<P: BufferPool>(pool: &mut P) -> Result<Buf<P::Lease>, AcquireError> {
///     let mut buf = pool.acquire(5)?;
///     buf.extend_from_slice(b"hello").expect("five bytes were asked for");
///     Ok(buf)
/// }
/// assert_eq!(&greeting(&mut HeapPool::new())?[..], b"hello");
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a pool of buffers",
    label = "buffers cannot be acquired from this",
    note = "a pool is passed by value or as `&mut pool`; through `&pool` only those serve that threads share (`BumpPool`, `ShardPool`)",
    note = "a pool for one thread at a time is not shared in an `Arc`: give each thread its own, or put it into a `Mutex`"
)]
pub trait BufferPool {
    /// The lease type: the part of the pool that its buffers keep.
    type Lease: Lease;

    /// Takes one empty buffer with room for `capacity` bytes.
    ///
    /// Its [`capacity`](Buf::capacity) is the requested number in every pool. Code that fills
    /// buffers therefore behaves the same over all pools. If a pool rounds a request up, the extra
    /// bytes are not part of the buffer. `acquire(0)` always succeeds.
    ///
    /// Contents: the filled part is empty; [`Buf::spare_mut`] shows recycled bytes.
    ///
    /// # Errors
    ///
    /// Returns one of these errors. The pool is then unchanged. The call never waits.
    ///
    /// - [`AcquireError::TooLarge`]: the request can never succeed.
    /// - [`AcquireError::Exhausted`]: it may succeed when buffers are released.
    /// - [`AcquireError::OutOfMemory`]: the system failed.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut buf = pool.acquire(1500)?;
    /// assert_eq!((buf.len(), buf.capacity()), (0, 1500));
    /// buf.extend_from_slice(b"packet")?;
    /// drop(buf); // returns the memory
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError>;

    /// Takes one buffer with `len` filled bytes, all zero.
    ///
    /// Cost: zeroing in addition to [`acquire`](Self::acquire), unless the memory is known to be
    /// zero.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](Self::acquire).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut buf = HeapPool::new().acquire_zeroed(4)?;
    /// buf[..2].copy_from_slice(b"ab");
    /// assert_eq!(&buf[..], b"ab\0\0");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut buf = self.acquire(len)?;
        // A pool of the user's may return one that is not empty.
        buf.clear();
        let available = buf.spare_capacity();
        buf.resize(len, 0).map_err(|_| AcquireError::Exhausted { requested: len, available })?;
        Ok(buf)
    }

    /// Makes room in `buf` for at least `additional` bytes after the filled ones.
    ///
    /// The buffer grows in place if the strategy can do so, because the memory after it is free.
    /// Otherwise the filled bytes move to another buffer of this pool, which replaces `buf`. A
    /// growing buffer gets twice its bytes if the pool has them, so a buffer that is filled in
    /// small steps rarely moves. [`shrink`](Self::shrink) returns the excess.
    ///
    /// `buf` may belong to another pool with the same lease type, or be a part of a split buffer:
    /// it then moves. Bytes that were consumed in front of the filled ones are used first.
    ///
    /// Contents: the new spare capacity has recycled bytes. A pool that wipes does so when the last
    /// part of a memory is dropped. The spare capacity may therefore still contain consumed bytes,
    /// or bytes of a part that was split off and dropped.
    ///
    /// Cost: nothing if there is room. In place a few dozen instructions; otherwise an acquire, a
    /// copy of the filled bytes, and a release. While both buffers are in use, the pool needs
    /// memory for both.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](Self::acquire), in the numbers of this request. The
    /// filled bytes are then unchanged. They may have moved to the front of the buffer's memory, as
    /// by [`compact`](Buf::compact), which raises the capacity by the consumed bytes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut buf = pool.acquire(4)?;
    /// buf.extend_from_slice(b"head")?;
    /// pool.grow(&mut buf, 5)?;
    /// buf.extend_from_slice(b" body")?;
    /// assert_eq!(&buf[..], b"head body");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn grow(&mut self, buf: &mut Buf<Self::Lease>, additional: usize) -> Result<(), AcquireError> {
        match Growth::of(buf, additional, self.max_capacity())? {
            Some(growth) => growth.move_to(self, buf),
            None => Ok(()),
        }
    }

    /// Takes a buffer as [`acquire`](Self::acquire) does, with all extra capacity that costs
    /// nothing. [`Writer`](crate::Writer) and [`grow_most`](Self::grow_most) call it. Until the
    /// writer [shrinks](Self::shrink) the buffer, no other request is made to the pool, unless it
    /// is shared.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](Self::acquire).
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_most(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        self.acquire(capacity)
    }

    /// Grows as [`grow`](Self::grow) does, with all extra capacity that costs nothing, as
    /// [`acquire_most`](Self::acquire_most).
    ///
    /// # Errors
    ///
    /// The errors are those of [`grow`](Self::grow).
    #[cfg_attr(feature = "track", track_caller)]
    fn grow_most(&mut self, buf: &mut Buf<Self::Lease>, additional: usize) -> Result<(), AcquireError> {
        self.grow(buf, additional)
    }

    /// Lowers the capacity of `buf` to its length. In the slot pool and the ring other buffers can
    /// use the rest at once; in other pools it is released with the buffer.
    ///
    /// Cost: a few instructions; nothing is copied.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut line = pool.acquire(80)?;
    /// line.extend_from_slice(b"short")?;
    /// pool.shrink(&mut line);
    /// assert_eq!((line.len(), line.capacity()), (5, 5));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn shrink(&mut self, buf: &mut Buf<Self::Lease>) {
        buf.shrink_to(0);
    }

    /// Returns the largest request, in bytes, that can ever succeed.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{AcquireError, BufferPool, HeapPool};
    ///
    /// /// Takes a buffer for a body whose length a header announced.
    /// fn body<P: BufferPool>(pool: &mut P, announced: usize) -> Result<usize, AcquireError> {
    ///     if announced > pool.max_capacity() {
    ///         return Ok(0); // no pool is large enough: the body is read in pieces
    ///     }
    ///     Ok(pool.acquire(announced)?.capacity())
    /// }
    /// assert_eq!(body(&mut HeapPool::new(), 1500), Ok(1500));
    /// assert_eq!(body(&mut HeapPool::new(), usize::MAX), Ok(0));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn max_capacity(&self) -> usize;

    /// Returns a snapshot of the pool's counters and memory.
    ///
    /// The counters are zero unless the `stats` feature is on.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let buf = pool.acquire(1500)?;
    /// # #[cfg(feature = "stats")]
    /// assert_eq!((pool.stats().in_use, pool.stats().in_use_bytes), (1, 1500));
    /// # drop(buf);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn stats(&self) -> PoolStats;
}

impl<P: BufferPool + ?Sized> BufferPool for &mut P {
    crate::forwarded_pool!(P => P::Lease);

    #[inline(always)]
    fn acquire_most(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).acquire_most(capacity)
    }

    #[inline(always)]
    fn grow_most(&mut self, buf: &mut Buf<Self::Lease>, additional: usize) -> Result<(), AcquireError> {
        (**self).grow_most(buf, additional)
    }

    #[inline(always)]
    fn shrink(&mut self, buf: &mut Buf<Self::Lease>) {
        (**self).shrink(buf);
    }
}

/// Fails every request for bytes. As a fallback, it makes its strategy report exhaustion.
///
/// ```
/// use bufcore::{AcquireError, BufferPool, NoFallback};
///
/// assert_eq!(NoFallback.acquire(1).map(drop), Err(AcquireError::TooLarge { requested: 1, limit: 0 }));
/// assert!(NoFallback.acquire(0).is_ok_and(|buf| buf.capacity() == 0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoFallback;

impl BufferPool for NoFallback {
    type Lease = NoLease;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<NoLease>, AcquireError> {
        if capacity > 0 {
            return Err(AcquireError::TooLarge { requested: capacity, limit: 0 });
        }
        Ok(empty_buf(1))
    }

    #[inline]
    fn max_capacity(&self) -> usize {
        0
    }

    #[inline]
    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}
