//! The two ways to ask a strategy for memory.

use core::ptr::NonNull;

use crate::copying::copy_bytes;
use crate::{AcquireError, Buf, Lease, NoLease, PoolStats};

/// A strategy that hands out whole buffers.
///
/// Takes `&mut self`, as `std::io::Read` does; a pool that may be shared implements it for `&Pool` too.
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
    /// What its buffers keep of the pool.
    type Lease: Lease;

    /// Takes one empty buffer with room for at least `capacity` bytes.
    ///
    /// Contents: the filled part is empty; what [`Buf::spare_mut`] shows is recycled. `acquire(0)` always succeeds.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] when it can never succeed, [`AcquireError::Exhausted`] when it may once buffers return,
    /// [`AcquireError::OutOfMemory`] when the system refused. The pool is unchanged then, and nothing waits.
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError>;

    /// Takes one buffer with `len` filled bytes, all zero.
    ///
    /// Cost: zeroing on top of [`acquire`](Self::acquire), unless the strategy knows the memory to be zero.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut buf = self.acquire(len)?;
        // A pool of the user's may return one that is not empty.
        buf.clear();
        let available = buf.spare_capacity();
        buf.resize(len, 0).map_err(|_| AcquireError::Exhausted { requested: len, available })?;
        Ok(buf)
    }

    /// The largest request, in bytes, that can ever succeed.
    fn max_capacity(&self) -> usize;

    /// What the pool has done and holds. The counters are zero unless the `stats` feature is on.
    fn stats(&self) -> PoolStats;
}

impl<P: BufferPool + ?Sized> BufferPool for &mut P {
    type Lease = P::Lease;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).acquire(capacity)
    }

    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).acquire_zeroed(len)
    }

    fn max_capacity(&self) -> usize {
        (**self).max_capacity()
    }

    fn stats(&self) -> PoolStats {
        (**self).stats()
    }
}

/// A strategy in which bytes are filled in steps and then detached as one buffer: a codec reads a header, learns the length
/// of the payload from it, reads the payload, and passes both on together.
///
/// One frame is open at a time. It opens with the first [`writable`](Self::writable) and closes with
/// [`detach`](Self::detach); its bytes stay contiguous, moving if they have to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be filled in frames",
    label = "no frame can be opened in this",
    note = "a pool with frames is passed by value or as `&mut pool`"
)]
pub trait FrameBuffer {
    /// What its frames keep of the pool.
    type Lease: Lease;

    /// Appends `additional` bytes to the open frame and lends them to be written; they count as filled at once.
    ///
    /// Contents: recycled bytes, unless the pool wipes. The caller overwrites all of them.
    ///
    /// # Errors
    ///
    /// As [`BufferPool::acquire`]. The frame and the bytes in it are unchanged then.
    #[cfg_attr(feature = "track", track_caller)]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError>;

    /// Appends `bytes` to the open frame.
    ///
    /// # Errors
    ///
    /// As [`writable`](Self::writable): then nothing is appended.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        copy_bytes(self.writable(bytes.len())?, bytes);
        Ok(())
    }

    /// The bytes of the open frame; empty when none is open.
    fn filled(&self) -> &[u8];

    /// The bytes of the open frame; empty when none is open.
    fn filled_mut(&mut self) -> &mut [u8];

    /// Drops the first `bytes` bytes of the open frame: what is detached later starts behind them.
    ///
    /// # Panics
    ///
    /// When `bytes` is over the length of the open frame.
    fn consume(&mut self, bytes: usize);

    /// Closes the frame and returns its bytes as an owned buffer; an empty one when no frame is open.
    ///
    /// # Errors
    ///
    /// When the strategy could not give the bytes a place of their own; the frame stays open then.
    #[cfg_attr(feature = "track", track_caller)]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError>;
}

/// A pool that refuses every request for bytes: as a fallback, it makes its strategy report exhaustion instead of falling back.
///
/// ```
/// use bufcore::{AcquireError, BufferPool, Reject};
///
/// assert_eq!(Reject.acquire(1).map(drop), Err(AcquireError::TooLarge { requested: 1, limit: 0 }));
/// assert!(Reject.acquire(0).is_ok_and(|buf| buf.capacity() == 0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reject;

impl BufferPool for Reject {
    type Lease = NoLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<NoLease>, AcquireError> {
        if capacity > 0 {
            return Err(AcquireError::TooLarge { requested: capacity, limit: 0 });
        }
        // SAFETY: no bytes are claimed.
        Ok(unsafe { Buf::from_raw_parts(NonNull::dangling(), 0, NoLease::new()) })
    }

    fn max_capacity(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}
