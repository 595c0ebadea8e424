//! Frames: bytes that grow in place in the gap at the cursor.
//!
//! The invariants P5 to P7 of `pool` are kept here.

use core::fmt;
use core::ptr::NonNull;

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
///     frame.writable(chunk.len())?.copy_from_slice(chunk);
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
    /// Appends by way of the pool, and takes the frame over again. By value, so that the writer itself need not be in memory.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn writable_slowly(
        pool: &mut SlotPool<F>,
        next: NonNull<u8>,
        additional: usize,
    ) -> (Result<NonNull<u8>, AcquireError>, NonNull<u8>, usize) {
        pool.frame_next = next;
        let lent = pool.writable_slowly(additional).map(|lent| NonNull::from(lent).cast());
        (lent, pool.frame_next, pool.frame_room())
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
        let mut lent = self.next;
        if additional <= self.room {
            // SAFETY: there is that much room in the region from here on (P6).
            self.next = unsafe { lent.add(additional) };
            self.room -= additional;
        } else {
            let served;
            (served, self.next, self.room) = Self::writable_slowly(self.pool, lent, additional);
            lent = served?;
        }
        // SAFETY: these bytes are in the gap that the frame has borrowed (P6), or the pool just lent them; they are initialised, and
        // the borrow of the writer, which has the pool's, keeps the frame from moving.
        Ok(unsafe { core::slice::from_raw_parts_mut(lent.as_ptr(), additional) })
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        if self.pool.frame == NONE {
            return self.pool.filled();
        }
        let start = self.pool.table.byte(self.pool.frame_start);
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

    /// The number of the open frame's bytes, when it is in the region.
    #[inline]
    fn frame_len(&self) -> usize {
        debug_assert!(self.frame != NONE);
        self.frame_next.addr().get() - self.table.byte(self.frame_start).addr().get()
    }

    /// Offset behind the open frame's last byte.
    #[inline]
    pub(crate) fn frame_end(&self) -> usize {
        self.frame_start + self.frame_len()
    }

    /// Lets the frame, whose slot is the tail, grow into the gap behind it without asking (P6).
    #[inline]
    fn borrow_gap(&mut self) {
        debug_assert!(self.tail == self.frame && self.cursor == self.frame_end());
        self.frame_limit = self.table.byte(self.limit).addr().get();
        self.limit = 0;
        self.gap_borrowed = true;
    }

    /// Takes the gap back from the frame, if it has borrowed it.
    #[inline]
    pub(crate) fn return_gap(&mut self) {
        if core::mem::take(&mut self.gap_borrowed) {
            debug_assert!(self.tail == self.frame && self.limit == 0);
            self.cursor = self.frame_end();
            self.limit = self.cursor + self.frame_room();
            self.frame_limit = self.frame_next.addr().get();
        }
    }

    /// Everything that [`FrameBuffer::writable`] may need beyond moving the end of the frame.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn writable_slowly(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if self.spill.is_some() {
            return self.grow_spill(additional);
        }
        if self.frame == NONE {
            let carved = self.find(additional);
            if !carved.is_somewhere() {
                self.spill = Some(self.fall_back(additional, 0)?);
                return self.grow_spill(additional);
            }
            self.place_frame(carved, additional);
            return Ok(self.last_bytes(additional));
        }
        self.return_gap();
        let len = self.frame_len();
        let Some(wanted) = len.checked_add(additional).filter(|&wanted| wanted <= size::MAX_BYTES) else {
            return Err(AcquireError::TooLarge { requested: additional, limit: self.max_capacity() - len });
        };
        if self.grow_in_place(wanted) || self.move_frame(wanted) {
            return Ok(self.last_bytes(additional));
        }
        if cfg!(bufworks_broken = "earlyclose") {
            self.close_frame();
        }
        // Room to grow, because the next step would move again.
        let roomy = wanted.saturating_mul(2).min(size::MAX_BYTES);
        let mut spill = self.fall_back_with_room(roomy, wanted, len)?;
        let copied = spill.extend_from_slice(self.filled());
        debug_assert!(copied.is_ok(), "{len} of {} bytes", spill.capacity());
        self.close_frame();
        self.spill = Some(spill);
        self.grow_spill(additional)
    }

    /// Opens, or moves, the frame to a place of `bytes` bytes that was just carved.
    fn place_frame(&mut self, carved: Carved, bytes: usize) {
        self.frame = carved.slot;
        self.frame_start = carved.start;
        self.fill_frame(bytes);
    }

    /// Makes the frame at the tail `bytes` bytes long, and lets it have the gap behind.
    fn fill_frame(&mut self, bytes: usize) {
        // A frame grows without gaps: whatever stagger was put behind it belongs to it.
        self.cursor = self.frame_start + bytes;
        self.frame_next = self.table.byte(self.cursor);
        self.borrow_gap();
    }

    /// Lets the frame grow to `wanted` bytes into the gap behind it, sliding down over what has become free before it.
    fn grow_in_place(&mut self, wanted: usize) -> bool {
        if self.tail != self.frame {
            self.table.set_end(self.tail, self.cursor);
            self.move_to(self.frame);
        }
        self.widen();
        if wanted > self.limit - self.frame_start {
            let mut before = self.table.prev(self.frame);
            while self.table.is_free(before) {
                let first = self.table.prev(before);
                self.let_go(before);
                before = first;
            }
            let start = self.align(self.table.end(before));
            if wanted > self.limit.saturating_sub(start) {
                return false;
            }
            let (len, end) = (self.frame_len(), self.frame_end());
            self.copy_frame(start);
            self.table.wipe(start + len, end);
            self.table.occupy(self.frame, start, wanted);
            self.frame_start = start;
        }
        self.fill_frame(wanted);
        true
    }

    /// Moves the frame to another gap with room for `wanted` bytes.
    fn move_frame(&mut self, wanted: usize) -> bool {
        let (old, end) = (self.frame, self.frame_end());
        let carved = self.find(wanted);
        if !carved.is_somewhere() {
            return false;
        }
        self.copy_frame(carved.start);
        self.table.abandon(old, end);
        self.place_frame(carved, wanted);
        true
    }

    /// Copies the frame's bytes to `start`; the two places may overlap.
    fn copy_frame(&mut self, start: usize) {
        if cfg!(bufworks_broken = "nocopy") {
            return;
        }
        let from = self.table.byte(self.frame_start);
        // SAFETY: both places lie in the region; the frame owns the one, and the other is free or its own.
        unsafe { from.copy_to(self.table.byte(start), self.frame_len()) }
    }

    /// Lends the last `bytes` bytes of the open frame.
    #[inline]
    fn last_bytes(&mut self, bytes: usize) -> &mut [u8] {
        let len = self.frame_len();
        &mut self.filled_mut()[len - bytes..]
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

    /// Lets the frame with the fallback grow.
    #[cfg_attr(feature = "track", track_caller)]
    fn grow_spill(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        let (len, remaining) = self.spill.as_ref().map_or((0, 0), |spill| (spill.len(), spill.remaining()));
        if additional > remaining {
            let Some(wanted) = len.checked_add(additional).filter(|&wanted| wanted <= size::MAX_BYTES) else {
                return Err(AcquireError::TooLarge {
                    requested: additional,
                    limit: self.max_capacity() - len,
                });
            };
            let roomy = wanted.max(len.saturating_mul(2)).min(size::MAX_BYTES);
            let mut larger = self.fall_back_with_room(roomy, wanted, len)?;
            let copied = larger.extend_from_slice(self.filled());
            debug_assert!(copied.is_ok(), "{len} of {} bytes", larger.capacity());
            self.spill = Some(larger);
        }
        self.fell_back = true;
        let Some(spill) = &mut self.spill else {
            return Ok(&mut []);
        };
        spill.advance(additional);
        Ok(&mut spill[len..])
    }

    /// Lets the open frame go, if it is in the region.
    pub(crate) fn close_frame(&mut self) {
        if self.frame != NONE {
            self.return_gap();
            self.table.abandon(self.frame, self.frame_end());
            self.forget_frame();
        }
    }

    /// There is no open frame in the region any more; its slot has another owner. The gap was returned.
    #[inline]
    fn forget_frame(&mut self) {
        self.frame = NONE;
        self.frame_next = self.table.byte(0);
        self.frame_limit = self.frame_next.addr().get();
    }
}

impl<F: BufferPool> FrameBuffer for SlotPool<F> {
    type Lease = SlotLease<F::Lease>;

    /// Cost: one comparison and one store while the frame can grow in place. Otherwise it moves once, with its bytes.
    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        let start = self.frame_next;
        if additional <= self.frame_room() {
            // SAFETY: the sum is at most `frame_limit`, an address in the region or one past its end (P6).
            self.frame_next = unsafe { start.add(additional) };
            // SAFETY: these bytes are in the gap that the frame has borrowed (P6), or none; they are initialised, in no live slot
            // (P2), and the borrow of the pool keeps the frame from moving.
            return Ok(unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), additional) });
        }
        self.writable_slowly(additional)
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        if self.frame == NONE {
            return self.spill.as_deref().unwrap_or_default();
        }
        let start = self.table.byte(self.frame_start);
        // SAFETY: these are the bytes of the open frame (P5), whose slot is live and which nobody else has.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), self.frame_len()) }
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        if self.frame == NONE {
            return self.spill.as_deref_mut().unwrap_or_default();
        }
        let start = self.table.byte(self.frame_start);
        // SAFETY: as in `filled`, and the borrow of the pool makes this the only one.
        unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), self.frame_len()) }
    }

    fn discard_front(&mut self, bytes: usize) {
        let len = self.filled().len();
        assert!(bytes <= len, "discard_front({bytes}) of a frame of {len} bytes");
        match &mut self.spill {
            Some(spill) => spill.discard_front(bytes),
            None if self.frame == NONE => {}
            None => self.frame_start += bytes,
        }
    }

    /// # Errors
    ///
    /// Never: the open frame has its place already.
    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        if self.frame == NONE {
            return Ok(match self.spill.take() {
                Some(spill) => self.hand_out_fallback(spill),
                None => self.hand_out_nothing(),
            });
        }
        self.return_gap();
        let carved = Carved { slot: self.frame, start: self.frame_start };
        let len = self.frame_len();
        // All of it, with the front that was discarded: that is what is out, and what a wipe has to reach.
        let taken = self.frame_end() - self.table.start(self.frame);
        self.table.set_capacity(self.frame, taken);
        self.forget_frame();
        let mut buf = self.hand_out(carved, len, taken);
        buf.advance(len);
        Ok(buf)
    }
}
