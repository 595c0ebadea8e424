//! Frames over any pool.
//!
//! # Invariants
//!
//! - W1: `front <= buf.len()`: the frame's bytes are those from `front` on; the ones before were
//!   consumed.

use core::fmt;

use crate::{AcquireError, Buf, BufferPool, FrameBuffer, Lease, PoolStats};

/// Fills one open frame in buffers of any pool.
///
/// It is the [`FrameBuffer`] of the pools that have no frames of their own, such as
/// [`HeapPool`](crate::HeapPool). So it is the control for code that is generic over `FrameBuffer`.
///
/// The frame is a buffer of the pool. When it is full, its bytes move. They go to the start of the
/// buffer, if enough bytes were consumed there, or else to a buffer of twice the size. Strategies
/// that grow frames in place (`bufslot`, `bufring`) move them less often.
///
/// `P` is a pool, a handle to a shared one, or a reference: see [`BufferPool::open_frame`]. The
/// writer is a pool as well, and hands out the buffers of `P`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{AcquireError, Buf, FrameBuffer, FrameWriter, HeapPool};
///
/// /// A byte with the length, and the bytes.
/// fn message<F: FrameBuffer>(
///     frames: &mut F,
///     bytes: &[u8],
/// ) -> Result<Buf<F::Lease>, AcquireError> {
///     frames.writable(1)?[0] = bytes.len() as u8;
///     frames.extend_from_slice(bytes)?;
///     frames.detach()
/// }
/// let mut frames = FrameWriter::new(HeapPool::new());
/// assert_eq!(&message(&mut frames, b"hello")?[..], b"\x05hello");
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
pub struct FrameWriter<P: BufferPool> {
    // In front of the pool, so that it is dropped before it.
    buf: Option<Buf<P::Lease>>,
    /// Bytes of `buf` in front of the frame's (W1).
    front: usize,
    pool: P,
}

impl<P: BufferPool> FrameWriter<P> {
    /// Makes a writer without an open frame, which takes its buffers from `pool`.
    ///
    /// Cost: nothing.
    pub fn new(pool: P) -> Self {
        Self { buf: None, front: 0, pool }
    }

    /// Returns a reference to the pool.
    pub fn get_ref(&self) -> &P {
        &self.pool
    }

    /// Returns a mutable reference to the pool. The open frame stays as it is.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{FrameBuffer, FrameWriter, HeapPool};
    ///
    /// let mut frames = FrameWriter::new(HeapPool::new());
    /// frames.extend_from_slice(b"open ")?;
    /// let other = frames.get_mut().acquire(64)?; // beside the frame
    /// frames.extend_from_slice(b"frame")?;
    /// assert_eq!((frames.filled(), other.capacity()), (&b"open frame"[..], 64));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn get_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// Drops the open frame, and returns the pool.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{FrameBuffer, FrameWriter, HeapPool};
    ///
    /// let mut frames = FrameWriter::new(HeapPool::new());
    /// frames.extend_from_slice(b"half a frame, and then a ti")?;
    /// let pool = frames.into_inner();
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(pool.stats().in_use, 0);
    /// # drop(pool);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn into_inner(self) -> P {
        self.pool
    }

    fn room(&self) -> usize {
        self.buf.as_ref().map_or(0, Buf::spare_capacity)
    }

    /// Makes room for `additional` bytes behind the frame, more than there is, in a buffer.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn make_room(&mut self, additional: usize) -> Result<(), AcquireError> {
        let len = self.filled().len();
        let limit = self.pool.max_capacity();
        let Some(wanted) = len.checked_add(additional) else {
            return Err(AcquireError::TooLarge { requested: additional, limit: limit.saturating_sub(len) });
        };
        if self.slide(additional) {
            return Ok(());
        }
        // Room to grow, because the next step would move the bytes again.
        let roomy = wanted.max(len.saturating_mul(2)).min(limit);
        let more = if roomy > wanted { self.pool.acquire(roomy).ok() } else { None };
        let buf = match more {
            Some(buf) => buf,
            None => self.pool.acquire(wanted).map_err(|error| less(error, additional, len))?,
        };
        let mut buf = Self::empty(buf, wanted).map_err(|available| AcquireError::Exhausted {
            requested: additional,
            available: available.saturating_sub(len),
        })?;
        if buf.extend_from_slice(self.filled()).is_ok() {
            self.front = 0;
            self.buf = Some(buf);
        }
        Ok(())
    }

    /// Empties a buffer of the pool's. A pool that a user wrote may return one that is not empty,
    /// or too small.
    fn empty(mut buf: Buf<P::Lease>, wanted: usize) -> Result<Buf<P::Lease>, usize> {
        buf.clear();
        if buf.capacity() < wanted { Err(buf.capacity()) } else { Ok(buf) }
    }

    /// Moves the frame to the start of its buffer, if it can then grow by `additional` bytes.
    fn slide(&mut self, additional: usize) -> bool {
        let (front, room) = (self.front, self.room());
        let Some(buf) = &mut self.buf else { return false };
        if additional > room.saturating_add(front) {
            return false;
        }
        let len = buf.len() - front;
        buf.copy_within(front.., 0);
        self.front = 0;
        self.cut(len);
        true
    }

    /// Cuts the buffer down to `len` filled bytes. A pool that wipes lends what was there as
    /// zeroes.
    fn cut(&mut self, len: usize) {
        let Some(buf) = &mut self.buf else { return };
        if buf.lease().wipe_range().is_some()
            && let Some(gone) = buf.get_mut(len..)
        {
            gone.fill(0);
        }
        buf.truncate(len);
    }
}

/// Restates the pool's refusal of a frame in the numbers of the request: `additional` bytes more
/// than the `len` that it has.
fn less(error: AcquireError, additional: usize, len: usize) -> AcquireError {
    let requested = additional;
    // Nobody can have what was just refused.
    let most = |number: usize| number.saturating_sub(len).min(requested.saturating_sub(1));
    match error {
        AcquireError::TooLarge { limit, .. } => AcquireError::TooLarge { requested, limit: most(limit) },
        AcquireError::Exhausted { available, .. } => {
            AcquireError::Exhausted { requested, available: most(available) }
        }
        AcquireError::OutOfMemory { .. } => AcquireError::OutOfMemory { requested },
    }
}

impl<P: BufferPool> FrameBuffer for FrameWriter<P> {
    type Lease = P::Lease;

    /// Appends `additional` bytes to the open frame and lends them to be written.
    ///
    /// Cost: two comparisons while the frame can grow in place; otherwise it moves, with its bytes.
    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if additional > self.room() {
            self.make_room(additional)?;
        }
        let Some(buf) = &mut self.buf else { return Ok(&mut []) };
        let len = buf.len();
        buf.commit(additional);
        Ok(&mut buf[len..])
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        self.buf.as_ref().and_then(|buf| buf.get(self.front..)).unwrap_or_default()
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        self.buf.as_mut().and_then(|buf| buf.get_mut(self.front..)).unwrap_or_default()
    }

    fn consume(&mut self, bytes: usize) {
        let len = self.filled().len();
        assert!(bytes <= len, "consume({bytes}) of a frame of {len} bytes");
        self.front += bytes;
        if bytes == len {
            // Nothing is left: the buffer is used from its start again.
            self.front = 0;
            self.cut(0);
        }
    }

    fn truncate(&mut self, len: usize) {
        if len < self.filled().len() {
            self.cut(self.front + len);
        }
    }

    /// Closes the frame and returns its bytes as an owned buffer.
    ///
    /// # Errors
    ///
    /// There are none with a pool that keeps to [`BufferPool`]: the open frame has its place
    /// already.
    fn detach(&mut self) -> Result<Buf<P::Lease>, AcquireError> {
        let front = core::mem::take(&mut self.front);
        // An empty buffer holds nothing: one without bytes goes back.
        let Some(mut buf) = self.buf.take().filter(|buf| buf.len() > front) else {
            return self.pool.acquire(0);
        };
        buf.consume(front);
        buf.shrink_to(0);
        Ok(buf)
    }
}

/// Hands out what the pool does, beside the open frame.
impl<P: BufferPool> BufferPool for FrameWriter<P> {
    type Lease = P::Lease;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
        self.pool.acquire(capacity)
    }

    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<P::Lease>, AcquireError> {
        self.pool.acquire_zeroed(len)
    }

    fn grow(&mut self, buf: &mut Buf<P::Lease>, capacity: usize) -> Result<(), AcquireError> {
        self.pool.grow(buf, capacity)
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

impl<P: BufferPool> fmt::Debug for FrameWriter<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameWriter").field("len", &self.filled().len()).finish_non_exhaustive()
    }
}
