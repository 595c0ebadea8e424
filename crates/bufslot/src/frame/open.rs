//! The writer of an open frame, which keeps the frame's end to itself.

use core::fmt;
use core::ptr::NonNull;

use bufcore::{AcquireError, Buf, BufferPool, FrameBuffer};

use crate::lease::SlotLease;
use crate::pool::SlotPool;

/// The open frame of a [`SlotPool`], held by a writer that keeps its end to itself.
///
/// A writer does the same as the pool's own methods. But the end of the frame can stay in a
/// register over a loop of small writes, because the pool need not know it in between. When the
/// writer is dropped the frame stays open.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::FrameBuffer;
/// use bufslot::SlotPool;
///
/// let mut pool = SlotPool::new(1024, 8)?;
/// let mut frame = pool.open_frame();
/// for chunk in [&b"hel"[..], b"lo"] {
///     frame.extend_from_slice(chunk)?;
/// }
/// assert_eq!(&frame.detach()?[..], b"hello");
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
pub struct OpenFrame<'a, F: BufferPool> {
    pool: &'a mut SlotPool<F>,
    /// Stands for the pool's `frame_next`, which is stale meanwhile: too low by what was written
    /// here. Or `NOWHERE`: then the pool has both.
    next: NonNull<u8>,
    /// Bytes from there to the pool's `frame_limit`.
    room: usize,
}

/// What a writer has while its pool is asked for something, and from then on if the fallback
/// panics: what it had before may be another's by then. With this it writes nothing, and the pool
/// is not told of it.
///
/// (A guard that takes the frame over when it is dropped makes the compiler keep the pool at hand
/// in a loop over small writes, which then takes a ninth longer.) A frame that really ends at this
/// address has no bytes that the pool does not know of, because writing moves its end.
const NOWHERE: (NonNull<u8>, usize) = (NonNull::dangling(), 0);

// SAFETY: a unique borrow of the pool, and two numbers of its.
unsafe impl<F: BufferPool + Send> Send for OpenFrame<'_, F> {}
// SAFETY: a shared writer only reads.
unsafe impl<F: BufferPool + Sync> Sync for OpenFrame<'_, F> {}

impl<F: BufferPool> OpenFrame<'_, F> {
    /// Lets the pool make room, and takes the frame over again. By value, so that the writer itself
    /// need not be in memory.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn make_room(
        pool: &mut SlotPool<F>,
        lent: (NonNull<u8>, usize),
        additional: usize,
    ) -> (Result<(), AcquireError>, NonNull<u8>, usize) {
        pool.take_back(lent);
        let made = pool.make_room(additional);
        let (next, room) = pool.lend();
        (made, next, room)
    }

    /// Sees to it that the frame can grow by `additional` bytes, more than it can already.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn grow(&mut self, additional: usize) -> Result<(), AcquireError> {
        let lent = self.give_up();
        let made;
        (made, self.next, self.room) = Self::make_room(self.pool, lent, additional);
        made
    }

    /// Leaves the frame to the pool, which has to be told of it with what this returns.
    #[inline(always)]
    fn give_up(&mut self) -> (NonNull<u8>, usize) {
        let lent = (self.next, self.room);
        (self.next, self.room) = NOWHERE;
        lent
    }

    /// Takes over the frame as the pool has it.
    #[inline(always)]
    fn renew(&mut self) {
        (self.next, self.room) = self.pool.lend();
    }

    /// Tells the pool where the frame ends by now. This writer keeps what the frame can grow into.
    #[inline]
    fn sync(&mut self) {
        self.pool.take_back((self.next, self.room));
        self.renew();
    }

    /// Closes the frame and returns its bytes as an owned buffer; an empty one when nothing was
    /// written.
    ///
    /// # Errors
    ///
    /// Never: the open frame has its place already.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::{FrameBuffer, SlotPool};
    ///
    /// let mut pool = SlotPool::new(1024, 8)?;
    /// let mut frame = pool.open_frame();
    /// for number in 0..4_u16 {
    ///     frame.writable(2)?.copy_from_slice(&number.to_be_bytes());
    /// }
    /// let frame = frame.detach()?;
    /// assert_eq!(frame, [0, 0, 0, 1, 0, 2, 0, 3]);
    /// assert!(pool.filled().is_empty()); // the pool is ready for the next frame
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn detach(mut self) -> Result<Buf<SlotLease<F::Lease>>, AcquireError> {
        FrameBuffer::detach(&mut self)
    }
}

impl<F: BufferPool> FrameBuffer for OpenFrame<'_, F> {
    type Lease = SlotLease<F::Lease>;

    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if additional > self.room {
            self.grow(additional)?;
        }
        let lent = self.next;
        // SAFETY: there is that much room from here on (P6).
        self.next = unsafe { lent.add(additional) };
        self.room -= additional;
        // SAFETY: these bytes are what the frame may grow into (P6); they are initialised and
        // nobody else's, and the borrow of the writer, which has the pool's, keeps the frame from
        // moving.
        Ok(unsafe { core::slice::from_raw_parts_mut(lent.as_ptr(), additional) })
    }

    /// Copies first and counts then, which takes a register less than
    /// [`writable`](FrameBuffer::writable).
    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        if bytes.len() > self.room {
            self.grow(bytes.len())?;
        }
        // SAFETY: there is room for them from here on (P6), which is nobody else's and so not that
        // of `bytes`.
        unsafe { self.next.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        // SAFETY: as above.
        self.next = unsafe { self.next.add(bytes.len()) };
        self.room -= bytes.len();
        Ok(())
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        let start = self.pool.frame_first;
        let next = if self.next == NOWHERE.0 { self.pool.frame_next } else { self.next };
        let len = next.addr().get() - start.addr().get();
        // SAFETY: these are the bytes of the open frame (P5), up to the end that this writer keeps.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), len) }
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        self.sync();
        self.pool.filled_mut()
    }

    fn consume(&mut self, bytes: usize) {
        self.sync();
        self.pool.consume(bytes);
    }

    fn truncate(&mut self, len: usize) {
        let lent = self.give_up();
        self.pool.take_back(lent);
        self.pool.truncate(len);
        self.renew();
    }

    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        let lent = self.give_up();
        self.pool.take_back(lent);
        let buf = self.pool.detach();
        self.renew();
        buf
    }
}

impl<F: BufferPool> Drop for OpenFrame<'_, F> {
    #[inline]
    fn drop(&mut self) {
        self.pool.take_back((self.next, self.room));
    }
}

impl<F: BufferPool> fmt::Debug for OpenFrame<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFrame").field("len", &self.filled().len()).finish_non_exhaustive()
    }
}

impl<F: BufferPool> SlotPool<F> {
    /// Returns a writer for the open frame, or for a new one if none is open. See [`OpenFrame`].
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::{FrameBuffer, SlotPool};
    ///
    /// let mut pool = SlotPool::new(1024, 8)?;
    /// pool.open_frame().extend_from_slice(b"begun, ")?; // the writer goes, the frame stays open
    /// assert_eq!(pool.filled(), b"begun, ");
    /// let mut frame = pool.open_frame();
    /// frame.extend_from_slice(b"done")?;
    /// assert_eq!(frame.detach()?, *b"begun, done");
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[inline]
    pub fn open_frame(&mut self) -> OpenFrame<'_, F> {
        let (next, room) = self.lend();
        OpenFrame { pool: self, next, room }
    }

    /// Lends a writer the end of the frame and the room that it can grow into (P6).
    ///
    /// With the feature `wipe` the pool keeps none of that room. By this it notices a writer that
    /// was forgotten, and that may have written there: the room that the frame seems to have is not
    /// all that it has.
    #[inline(always)]
    fn lend(&mut self) -> (NonNull<u8>, usize) {
        let lent = (self.frame_next, self.frame_room());
        #[cfg(feature = "wipe")]
        {
            self.frame_limit = self.frame_next.addr().get();
        }
        lent
    }

    /// Takes back what a writer had: where the frame ends by now, and by how many bytes it can grow
    /// there.
    #[inline(always)]
    fn take_back(&mut self, (next, room): (NonNull<u8>, usize)) {
        if next == NOWHERE.0 {
            return;
        }
        self.frame_next = next;
        #[cfg(feature = "wipe")]
        {
            self.frame_limit = next.addr().get() + room;
        }
        #[cfg(not(feature = "wipe"))]
        debug_assert!(room == self.frame_room(), "a writer counts what it uses");
    }
}
