//! The two ways to ask a strategy for memory.

use core::ptr::NonNull;

use crate::copying::copy_bytes;
use crate::{AcquireError, Buf, FrameWriter, Lease, NoLease, PoolStats, SplitLease};

/// Hands out whole buffers: every strategy is such a pool.
///
/// The methods take `&mut self`, as those of `std::io::Read` do. A pool that may be shared
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
    /// Its [`capacity`](Buf::capacity) is the number that was asked for, in every pool. So code
    /// that fills buffers does the same over all of them. If a pool rounds a request up, the rest
    /// stays its own. `acquire(0)` always succeeds.
    ///
    /// Contents: the filled part is empty; [`Buf::spare_mut`] shows recycled bytes.
    ///
    /// # Errors
    ///
    /// Returns one of these errors. The pool is unchanged then, and nothing waits.
    ///
    /// - [`AcquireError::TooLarge`]: the request can never succeed.
    /// - [`AcquireError::Exhausted`]: it may succeed when buffers have been released.
    /// - [`AcquireError::OutOfMemory`]: the system refused.
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
    /// Cost: zeroing on top of [`acquire`](Self::acquire), unless the strategy knows the memory to
    /// be zero.
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

    /// Moves the filled bytes of `buf` to a buffer of this pool with room for `capacity` bytes,
    /// which replaces `buf`. A buffer that has the room stays as it is.
    ///
    /// `buf` may be of another pool with the same kind of lease, or a part of a split buffer. The
    /// bytes come to the front, also when bytes before them were consumed. Where [`Buf::compact`]
    /// makes enough room, that is cheaper.
    ///
    /// Cost: an acquire, a copy of the filled bytes, and a release. While both are out, the pool
    /// needs room for both.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](Self::acquire). `buf` is unchanged then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut buf = pool.acquire(4)?;
    /// buf.extend_from_slice(b"head")?;
    /// pool.grow(&mut buf, 9)?;
    /// buf.extend_from_slice(b" body")?;
    /// assert_eq!((&buf[..], buf.capacity()), (&b"head body"[..], 9));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn grow(&mut self, buf: &mut Buf<Self::Lease>, capacity: usize) -> Result<(), AcquireError> {
        if capacity <= buf.capacity() {
            return Ok(());
        }
        let mut larger = self.acquire(capacity)?;
        // A pool of the user's may return one that is not empty, or too small.
        larger.clear();
        let available = larger.capacity();
        if available < capacity || larger.extend_from_slice(buf).is_err() {
            return Err(AcquireError::Exhausted { requested: capacity, available });
        }
        *buf = larger;
        Ok(())
    }

    /// Returns a writer that fills bytes in steps in buffers of this pool: a [`FrameBuffer`] over
    /// any pool. See [`FrameWriter`].
    ///
    /// Pools with frames of their own, which grow in place, have a function of this name that
    /// returns those.
    ///
    /// Cost: nothing.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"hel")?;
    /// frame.extend_from_slice(b"lo")?;
    /// assert_eq!(&frame.detach()?[..], b"hello");
    /// # }
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    fn open_frame(&mut self) -> FrameWriter<&mut Self>
    where
        Self: Sized,
    {
        FrameWriter::new(self)
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

    /// Returns a snapshot of the pool's counters, and of the memory that it holds.
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
    type Lease = P::Lease;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).acquire(capacity)
    }

    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).acquire_zeroed(len)
    }

    #[inline]
    fn grow(&mut self, buf: &mut Buf<Self::Lease>, capacity: usize) -> Result<(), AcquireError> {
        (**self).grow(buf, capacity)
    }

    fn max_capacity(&self) -> usize {
        (**self).max_capacity()
    }

    fn stats(&self) -> PoolStats {
        (**self).stats()
    }
}

/// Fills bytes in steps, then detaches them as one buffer.
///
/// A codec reads a header, learns the length of the payload from it, reads the payload, and passes
/// both on together. One frame is open at a time. It opens with the first
/// [`writable`](Self::writable) and closes with [`detach`](Self::detach). Its bytes stay
/// contiguous; they move if they have to.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use std::io::{self, Read};
///
/// use bufcore::{Buf, BufferPool, FrameBuffer, HeapPool};
///
/// /// Reads a message: two bytes with its length, and as many bytes.
/// fn message<F: FrameBuffer>(frame: &mut F, socket: &mut impl Read) -> io::Result<Buf<F::Lease>> {
///     let header = frame.writable(2).map_err(io::Error::other)?;
///     socket.read_exact(header)?;
///     let length = usize::from(u16::from_be_bytes([header[0], header[1]]));
///     socket.read_exact(frame.writable(length).map_err(io::Error::other)?)?;
///     frame.detach().map_err(io::Error::other)
/// }
///
/// let mut pool = HeapPool::new();
/// let message = message(&mut pool.open_frame(), &mut &b"\0\x05hello, and more"[..])?;
/// assert_eq!(message, b"\0\x05hello");
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be filled in frames",
    label = "no frame can be opened in this",
    note = "a pool with frames is passed by value or as `&mut pool`"
)]
pub trait FrameBuffer {
    /// The lease type: the part of the pool that its frames keep.
    type Lease: Lease;

    /// Appends `additional` bytes to the open frame and lends them to be written. They count as
    /// filled at once.
    ///
    /// Contents: recycled bytes, unless the pool wipes. The caller overwrites all of them.
    ///
    /// # Errors
    ///
    /// The errors are those of [`BufferPool::acquire`]. The frame and the bytes in it are unchanged
    /// then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.writable(2)?.copy_from_slice(&[0, 5]);
    /// frame.writable(5)?.copy_from_slice(b"hello");
    /// assert_eq!(&frame.detach()?[..], b"\0\x05hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError>;

    /// Appends `bytes` to the open frame.
    ///
    /// # Errors
    ///
    /// The errors are those of [`writable`](Self::writable). Nothing is appended then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut response = pool.open_frame();
    /// for header in ["HTTP/1.1 200 OK", "Content-Length: 0", ""] {
    ///     response.extend_from_slice(header.as_bytes())?;
    ///     response.extend_from_slice(b"\r\n")?;
    /// }
    /// assert!(response.detach()?.ends_with(b": 0\r\n\r\n"));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        copy_bytes(self.writable(bytes.len())?, bytes);
        Ok(())
    }

    /// Returns the bytes of the open frame, or an empty slice when none is open.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// assert!(frame.filled().is_empty());
    /// frame.extend_from_slice(&[0, 5])?;
    /// assert_eq!(frame.filled(), [0, 5]); // a header that says how much follows
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn filled(&self) -> &[u8];

    /// Returns the bytes of the open frame, which can be changed in place. The slice is empty when
    /// no frame is open.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"\0hello")?;
    /// frame.filled_mut()[0] = 5; // the length, which was not known before
    /// assert_eq!(&frame.detach()?[..], b"\x05hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn filled_mut(&mut self) -> &mut [u8];

    /// Drops the first `bytes` bytes of the open frame. The detached frame starts behind them.
    ///
    /// # Panics
    ///
    /// Panics when `bytes` is over the length of the open frame.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"\0\x05hello")?;
    /// frame.consume(2);
    /// assert_eq!(&frame.detach()?[..], b"hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn consume(&mut self, bytes: usize);

    /// Keeps the first `len` bytes of the open frame. A `len` over its length changes nothing.
    ///
    /// The frame can grow into the room again. Codecs that decrypt in place use this, and those
    /// that ask for room before they know how much they write.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"hello, and padding")?;
    /// frame.truncate(5);
    /// assert_eq!(&frame.detach()?[..], b"hello");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn truncate(&mut self, len: usize);

    /// Closes the frame and returns its bytes as an owned buffer, whose capacity is its length. The
    /// buffer is empty when no frame is open.
    ///
    /// # Errors
    ///
    /// Returns an error when the pool could not give the bytes a place of their own. The frame
    /// stays open then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{BufferPool, FrameBuffer, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"one")?;
    /// let first = frame.detach()?; // owned, `Send`
    /// frame.extend_from_slice(b"two")?; // the next frame
    /// assert_eq!((&first[..], &frame.detach()?[..]), (&b"one"[..], &b"two"[..]));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError>;
}

impl<F: FrameBuffer + ?Sized> FrameBuffer for &mut F {
    type Lease = F::Lease;

    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        (**self).writable(additional)
    }

    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        (**self).extend_from_slice(bytes)
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        (**self).filled()
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        (**self).filled_mut()
    }

    fn consume(&mut self, bytes: usize) {
        (**self).consume(bytes);
    }

    fn truncate(&mut self, len: usize) {
        (**self).truncate(len);
    }

    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        (**self).detach()
    }
}

/// Refuses every request for bytes. As a fallback, it makes its strategy report exhaustion instead
/// of falling back.
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
        Ok(unsafe { Buf::from_raw_parts(NonNull::dangling(), 0, SplitLease::nothing()) })
    }

    fn max_capacity(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}
