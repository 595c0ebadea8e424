//! Frames: bytes that grow in place in the gap behind them.
//!
//! The invariants P5 to P7 of `pool` are kept here.

use core::fmt;
use core::ptr::NonNull;

use bufcore::strategy::copy_bytes;
use bufcore::{AcquireError, Buf, BufferPool, FrameBuffer, size};

use crate::lease::SlotLease;
use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

/// The open frame of a [`SlotPool`], held by a writer that keeps its end to itself.
///
/// The same as writing through the pool, but the end of the frame can stay in a register over a loop of small writes, because the
/// pool need not know it in between. When the writer is dropped the frame stays open.
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
    /// Stands for the pool's `frame_next`, which is stale meanwhile: too low by what was written here.
    next: NonNull<u8>,
    /// Bytes from there to the pool's `frame_limit`.
    room: usize,
}

// SAFETY: a unique borrow of the pool, and two numbers of its.
unsafe impl<F: BufferPool + Send> Send for OpenFrame<'_, F> {}
// SAFETY: a shared writer only reads.
unsafe impl<F: BufferPool + Sync> Sync for OpenFrame<'_, F> {}

impl<F: BufferPool> OpenFrame<'_, F> {
    /// Lets the pool make room, and takes the frame over again. By value, so that the writer itself need not be in memory.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn make_room(
        pool: &mut SlotPool<F>,
        next: NonNull<u8>,
        additional: usize,
    ) -> (Result<(), AcquireError>, NonNull<u8>, usize) {
        pool.frame_next = next;
        (pool.make_room(additional), pool.frame_next, pool.frame_room())
    }

    /// Sees to it that the frame can grow by `additional` bytes, more than it can already.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn grow(&mut self, additional: usize) -> Result<(), AcquireError> {
        let made;
        (made, self.next, self.room) = Self::make_room(self.pool, self.next, additional);
        made
    }

    /// Tells the pool where the frame ends by now.
    #[inline]
    fn sync(&mut self) {
        self.pool.frame_next = self.next;
    }

    /// Closes the frame and returns its bytes as an owned buffer; an empty one when nothing was written.
    ///
    /// # Errors
    ///
    /// Never: the open frame has its place already.
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
        // SAFETY: these bytes are what the frame may grow into (P6); they are initialised and nobody else's, and the borrow of the
        // writer, which has the pool's, keeps the frame from moving.
        Ok(unsafe { core::slice::from_raw_parts_mut(lent.as_ptr(), additional) })
    }

    /// Copies first and counts then, which takes a register less than [`writable`](FrameBuffer::writable).
    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), AcquireError> {
        if bytes.len() > self.room {
            self.grow(bytes.len())?;
        }
        // SAFETY: there is room for them from here on (P6), which is nobody else's and so not that of `bytes`.
        unsafe { self.next.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        // SAFETY: as above.
        self.next = unsafe { self.next.add(bytes.len()) };
        self.room -= bytes.len();
        Ok(())
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        let start = self.pool.frame_first;
        let len = self.next.addr().get() - start.addr().get();
        // SAFETY: these are the bytes of the open frame (P5), up to the end that this writer keeps.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), len) }
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        self.sync();
        self.pool.filled_mut()
    }

    fn discard_front(&mut self, bytes: usize) {
        self.sync();
        self.pool.discard_front(bytes);
    }

    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        self.sync();
        let buf = self.pool.detach();
        (self.next, self.room) = (self.pool.frame_next, self.pool.frame_room());
        buf
    }
}

impl<F: BufferPool> Drop for OpenFrame<'_, F> {
    #[inline]
    fn drop(&mut self) {
        self.sync();
    }
}

impl<F: BufferPool> fmt::Debug for OpenFrame<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFrame").field("len", &self.filled().len()).finish_non_exhaustive()
    }
}

impl<F: BufferPool> SlotPool<F> {
    /// A writer for the open frame, or for a new one if none is open. See [`OpenFrame`].
    #[inline]
    pub fn open_frame(&mut self) -> OpenFrame<'_, F> {
        let (next, room) = (self.frame_next, self.frame_room());
        OpenFrame { pool: self, next, room }
    }

    /// What the frame can grow by without asking (P6).
    #[inline]
    fn frame_room(&self) -> usize {
        self.frame_limit - self.frame_next.addr().get()
    }

    /// The number of the open frame's bytes.
    #[inline]
    fn frame_len(&self) -> usize {
        self.frame_next.addr().get() - self.frame_first.addr().get()
    }

    /// Offset of the open frame's first byte, when it is in the region.
    #[inline]
    fn frame_start(&self) -> usize {
        debug_assert!(self.frame != NONE);
        self.frame_first.addr().get() - self.table.byte(0).addr().get()
    }

    /// Offset behind the open frame's last byte, when it is in the region.
    #[inline]
    pub(crate) fn frame_end(&self) -> usize {
        self.frame_start() + self.frame_len()
    }

    /// Lets the frame, whose slot is the tail, grow into the gap behind it without asking (P6).
    #[inline]
    fn borrow_gap(&mut self) {
        debug_assert!(self.tail == self.frame);
        let slots = self.table.slots();
        self.frame_limit = self.table.byte(slots.start(slots.next(self.tail))).addr().get();
        slots.set_end(self.tail, self.capacity);
        self.gap_borrowed = true;
    }

    /// Takes the gap back from the frame, if it has borrowed it.
    #[inline]
    pub(crate) fn return_gap(&mut self) {
        if core::mem::take(&mut self.gap_borrowed) {
            self.table.slots().set_end(self.frame, self.frame_end());
            self.frame_limit = self.frame_next.addr().get();
        }
    }

    /// Sees to it that the frame can grow by `additional` bytes, more than it can already.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn make_room(&mut self, additional: usize) -> Result<(), AcquireError> {
        let len = self.frame_len();
        let Some(wanted) = len.checked_add(additional).filter(|&wanted| wanted <= size::MAX_BYTES) else {
            let limit = self.max_capacity().saturating_sub(len);
            return Err(AcquireError::TooLarge { requested: additional, limit });
        };
        if self.frame != NONE {
            self.return_gap();
            if self.grow_in_place(wanted) || self.move_frame(wanted) {
                return Ok(());
            }
        } else if self.spill.is_none() {
            let carved = self.find(wanted);
            if carved.is_somewhere() {
                self.place_frame(carved, 0);
                return Ok(());
            }
        }
        self.spill_frame(wanted, len)
    }

    /// Moves the frame of `len` bytes to a new buffer of the fallback's, with room for `wanted` bytes.
    #[cfg_attr(feature = "track", track_caller)]
    fn spill_frame(&mut self, wanted: usize, len: usize) -> Result<(), AcquireError> {
        if cfg!(bufworks_broken = "earlyclose") {
            self.close_frame();
        }
        // Room to grow, because the next step would move again.
        let roomy = if len == 0 { wanted } else { wanted.max(len.saturating_mul(2)).min(size::MAX_BYTES) };
        let mut spill = self.fall_back_with_room(roomy, wanted, len)?;
        let room = spill.spare_mut();
        copy_bytes(&mut room[..len], self.filled());
        let (first, bytes) = (NonNull::from(&mut *room).cast::<u8>(), room.len());
        self.close_frame();
        self.frame_first = first;
        // SAFETY: `len` bytes were just copied there.
        self.frame_next = unsafe { first.add(len) };
        self.frame_limit = first.addr().get() + bytes;
        self.spill = Some(spill);
        Ok(())
    }

    /// Opens, or moves, the frame to a place that was just carved, where it has `len` bytes, and lets it have the gap behind.
    fn place_frame(&mut self, carved: Carved, len: usize) {
        self.frame = carved.slot;
        self.frame_first = self.table.byte(carved.start);
        // A frame grows without gaps: whatever else was carved for it, or put behind it as stagger, is its to grow into.
        self.frame_next = self.table.byte(carved.start + len);
        self.borrow_gap();
    }

    /// Lets the frame grow to `wanted` bytes into the gap behind it, sliding down over what has become free before it.
    fn grow_in_place(&mut self, wanted: usize) -> bool {
        debug_assert!(!self.gap_borrowed);
        self.tail = self.frame;
        let limit = self.widen();
        let (len, end, mut start) = (self.frame_len(), self.frame_end(), self.frame_start());
        if wanted > limit - start {
            let mut before = self.table.slots().prev(self.frame);
            while self.table.slots().is_free(before) {
                let first = self.table.slots().prev(before);
                self.let_go(before);
                before = first;
            }
            start = self.align(self.table.slots().end(before));
            if wanted > limit.saturating_sub(start) {
                return false;
            }
            self.copy_frame(start);
            self.table.wipe(start + len, end);
            self.table.slots().set_start(self.frame, start);
            self.table.slots().occupy(self.frame, wanted);
        }
        self.place_frame(Carved { slot: self.frame, start }, len);
        true
    }

    /// Moves the frame to another gap with room for `wanted` bytes.
    fn move_frame(&mut self, wanted: usize) -> bool {
        let (old, len, end) = (self.frame, self.frame_len(), self.frame_end());
        let carved = self.find(wanted);
        if !carved.is_somewhere() {
            return false;
        }
        self.copy_frame(carved.start);
        self.table.abandon(old, end);
        self.place_frame(carved, len);
        true
    }

    /// Copies the frame's bytes to `start`; the two places may overlap.
    fn copy_frame(&mut self, start: usize) {
        if cfg!(bufworks_broken = "nocopy") {
            return;
        }
        let from = self.frame_first;
        // SAFETY: both places lie in the region; the frame owns the one, and the other is free or its own.
        unsafe { from.copy_to(self.table.byte(start), self.frame_len()) }
    }

    /// Takes `roomy` bytes from the fallback for a frame of `len` bytes, or the `wanted` ones if that is too much: one request, for
    /// what is counted and for the error.
    #[cfg_attr(feature = "track", track_caller)]
    fn fall_back_with_room(
        &mut self,
        roomy: usize,
        wanted: usize,
        len: usize,
    ) -> Result<Buf<F::Lease>, AcquireError> {
        if roomy > wanted
            && let Ok(spill) = self.ask_fallback(roomy)
        {
            return Ok(spill);
        }
        self.fall_back(wanted, len)
    }

    /// [`FrameBuffer::detach`] when there is no open frame in the region.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn detach_spill(&mut self) -> Buf<SlotLease<F::Lease>> {
        let (first, len) = (self.frame_first.addr().get(), self.frame_len());
        self.forget_frame();
        let Some(mut spill) = self.spill.take() else {
            return self.hand_out_nothing();
        };
        let discarded = first - spill.spare_mut().as_ptr().addr();
        spill.advance(discarded + len);
        spill.discard_front(discarded);
        self.hand_out_fallback(spill)
    }

    /// Lets the open frame go, if it is in the region.
    pub(crate) fn close_frame(&mut self) {
        if self.frame != NONE {
            self.return_gap();
            self.table.abandon(self.frame, self.frame_end());
            self.forget_frame();
        }
    }

    /// There is no open frame any more; what held it has another owner. The gap was returned.
    #[inline]
    fn forget_frame(&mut self) {
        self.frame = NONE;
        self.frame_first = self.table.byte(0);
        self.frame_next = self.frame_first;
        self.frame_limit = self.frame_first.addr().get();
    }
}

impl<F: BufferPool> FrameBuffer for SlotPool<F> {
    type Lease = SlotLease<F::Lease>;

    /// Cost: one comparison and one store while the frame can grow in place. Otherwise it moves once, with its bytes.
    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if additional > self.frame_room() {
            self.make_room(additional)?;
        }
        let lent = self.frame_next;
        // SAFETY: the sum is at most `frame_limit`, an address in the frame's memory or one past its end (P6).
        self.frame_next = unsafe { lent.add(additional) };
        // SAFETY: these bytes are what the frame may grow into (P6), or none; they are initialised and nobody else's, and the borrow
        // of the pool keeps the frame from moving.
        Ok(unsafe { core::slice::from_raw_parts_mut(lent.as_ptr(), additional) })
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        // SAFETY: these are the bytes of the open frame (P5), which nobody else has.
        unsafe { core::slice::from_raw_parts(self.frame_first.as_ptr(), self.frame_len()) }
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `filled`, and the borrow of the pool makes this the only one.
        unsafe { core::slice::from_raw_parts_mut(self.frame_first.as_ptr(), self.frame_len()) }
    }

    fn discard_front(&mut self, bytes: usize) {
        let len = self.frame_len();
        assert!(bytes <= len, "discard_front({bytes}) of a frame of {len} bytes");
        // SAFETY: within the frame, or at its end.
        self.frame_first = unsafe { self.frame_first.add(bytes) };
    }

    /// # Errors
    ///
    /// Never: the open frame has its place already.
    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        if self.frame == NONE {
            return Ok(self.detach_spill());
        }
        self.return_gap();
        let carved = Carved { slot: self.frame, start: self.frame_start() };
        let len = self.frame_len();
        // All of it, with the front that was discarded: that is what is out, and what a wipe has to reach.
        let taken = self.frame_end() - self.table.slots().start(self.frame);
        self.table.set_capacity(self.frame, taken);
        self.forget_frame();
        let mut buf = self.hand_out(carved, len, taken);
        buf.advance(len);
        Ok(buf)
    }
}
