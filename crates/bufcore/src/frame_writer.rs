//! Frames over any pool.
//!
//! # Invariants
//!
//! - W1: `front <= buf.len()`: the frame's bytes are those from `front` on; the ones before were
//!   consumed.

use core::fmt;

use crate::{AcquireError, Buf, BufferPool, FrameBuffer, Lease, PoolStats};

/// A writer with one open frame, which it fills in buffers of any pool.
///
/// It is the [`FrameBuffer`] of the pools that have none of their own, such as
/// [`HeapPool`](crate::HeapPool), and so the control for code that is generic over it.
///
/// The frame is a buffer of the pool. When it is full, its bytes move. They go to the start of the
/// buffer, if there is room enough where bytes were consumed, or else to a buffer of twice the
/// size. Strategies that grow frames in place (`bufslot`, `bufring`) move them less often.
///
/// `P` is a pool, a handle to a shared one, or a reference: see [`BufferPool::open_frame`]. The
/// writer is a pool as well, and hands out what that does.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{AcquireError, Buf, FrameBuffer, FrameWriter, HeapPool};
///
/// /// A byte with the length, and the bytes.
/// fn message<F: FrameBuffer>(frames: &mut F, bytes: &[u8]) -> Result<Buf<F::Lease>, AcquireError> {
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

    /// Returns the pool.
    pub fn get_ref(&self) -> &P {
        &self.pool
    }

    /// Returns the pool. The open frame stays as it is.
    pub fn get_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// Returns the pool, and drops the open frame.
    pub fn into_inner(self) -> P {
        self.pool
    }

    fn room(&self) -> usize {
        self.buf.as_ref().map_or(0, Buf::spare_capacity)
    }

    /// Sees to it that the frame can grow by `additional` bytes, more than it can already, and that
    /// there is a buffer.
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

    /// A buffer as it comes from a pool of the user's, which may return one that is not empty, or
    /// too small.
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

/// The pool's refusal of a frame of `additional` bytes more than the `len` that it has, in numbers
/// of what was asked for.
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

    /// # Errors
    ///
    /// Never, with a pool that keeps to [`BufferPool`]: the open frame has its place already.
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
