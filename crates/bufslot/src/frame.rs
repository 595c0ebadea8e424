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
    /// Stands for the pool's `frame_next`, which is stale meanwhile: too low by what was written here. Or `NOWHERE`: then the pool has both.
    next: NonNull<u8>,
    /// Bytes from there to the pool's `frame_limit`.
    room: usize,
}

/// What a writer has while its pool is asked for something, and from then on if the fallback panics: what it
/// had before may be another's by then. With this it writes nothing, and the pool is not told of it.
///
/// (A guard that takes the frame over when it is dropped makes the compiler keep the pool at hand in a loop
/// over small writes, which then takes a ninth longer.) A frame that really ends at this address has no bytes
/// that the pool does not know of, because writing moves its end.
const NOWHERE: (NonNull<u8>, usize) = (NonNull::dangling(), 0);

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
    #[inline]
    pub fn open_frame(&mut self) -> OpenFrame<'_, F> {
        let (next, room) = self.lend();
        OpenFrame { pool: self, next, room }
    }

    /// Where the frame ends and what it can grow into (P6), for a writer that has both from here on.
    ///
    /// With the feature `wipe` the pool keeps none of that room. So it sees that a writer was forgotten,
    /// who may have written there: the room that the frame seems to have is not all that it has.
    #[inline(always)]
    fn lend(&mut self) -> (NonNull<u8>, usize) {
        let lent = (self.frame_next, self.frame_room());
        #[cfg(feature = "wipe")]
        {
            self.frame_limit = self.frame_next.addr().get();
        }
        lent
    }

    /// Takes back what a writer had: where the frame ends by now, and by how many bytes it can grow there.
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

    /// Address of the open frame's first byte.
    #[inline]
    fn frame_start(&self) -> usize {
        self.frame_first.addr().get()
    }

    /// Address behind the open frame's last byte.
    #[inline]
    pub(crate) fn frame_end(&self) -> usize {
        self.frame_next.addr().get()
    }

    /// Lets the frame, whose slot is the tail, grow into the gap behind it without asking (P6).
    #[inline]
    fn borrow_gap(&mut self) {
        debug_assert!(self.tail == self.frame);
        let slots = self.table.slots();
        self.frame_limit = slots.start(slots.next(self.tail));
        slots.set_end(self.tail, self.table.end());
        self.gap_borrowed = true;
    }

    /// Takes the gap back from the frame, if it has borrowed it.
    #[inline]
    pub(crate) fn return_gap(&mut self) {
        if core::mem::take(&mut self.gap_borrowed) {
            #[cfg(feature = "wipe")]
            if self.frame_room() == 0 {
                self.wipe_gap();
            }
            self.table.slots().set_end(self.frame, self.frame_end());
            self.frame_limit = self.frame_next.addr().get();
        }
    }

    /// Zeroes the gap behind the frame, which has borrowed it, if the pool wipes: a forgotten writer may
    /// have written there (see [`lend`](Self::lend)).
    #[cfg(feature = "wipe")]
    #[cold]
    #[inline(never)]
    fn wipe_gap(&self) {
        let slots = self.table.slots();
        self.table.wipe(self.frame_end(), slots.start(slots.next(self.frame)));
    }

    /// Lets a frame that is with the fallback have the rest of its buffer, if a forgotten writer had it,
    /// and zeroes that if the pool or its fallback wipes.
    #[cfg(feature = "wipe")]
    fn renew_spill(&mut self) {
        let (first, next) = (self.frame_first.addr().get(), self.frame_next.addr().get());
        let Some(spill) = self.spill.as_mut().filter(|_| self.frame_limit == next) else { return };
        let wipes = self.table.wipes() || bufcore::Lease::wipe_range(spill.lease()).is_some();
        let memory = spill.spare_mut();
        let (discarded, used) = (first - memory.as_ptr().addr(), next - memory.as_ptr().addr());
        if wipes {
            memory[used..].fill(0);
        }
        self.frame_limit = memory.as_ptr().addr() + memory.len();
        let start = NonNull::from(memory).cast::<u8>();
        // SAFETY: the frame starts and ends in this buffer (P5).
        self.frame_first = unsafe { start.add(discarded) };
        // SAFETY: likewise.
        self.frame_next = unsafe { start.add(used) };
    }

    /// Zeroes the last `cut` bytes of the frame, which are about to be cut off, if the pool or its fallback wipes. Where a forgotten
    /// writer may have had the room behind them (see [`lend`](Self::lend)), the frame has none afterwards, as before.
    #[cfg(feature = "wipe")]
    fn wipe_cut(&mut self, cut: usize) {
        let of_spill = |spill: &Buf<F::Lease>| bufcore::Lease::wipe_range(spill.lease()).is_some();
        if self.table.wipes() || self.spill.as_ref().is_some_and(of_spill) {
            let kept = self.frame_len() - cut;
            self.filled_mut()[kept..].fill(0);
        }
        if self.frame_room() == 0 {
            self.frame_limit -= cut;
        }
    }

    /// Sees to it that the frame can grow by `additional` bytes, more than it can already.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn make_room(&mut self, additional: usize) -> Result<(), AcquireError> {
        #[cfg(feature = "wipe")]
        {
            self.renew_spill();
            if additional <= self.frame_room() {
                return Ok(());
            }
        }
        let len = self.frame_len();
        let Some(wanted) = len.checked_add(additional).filter(|&wanted| wanted <= size::MAX_BYTES) else {
            let limit = self.max_capacity().min(size::MAX_BYTES).saturating_sub(len);
            return Err(AcquireError::TooLarge { requested: additional, limit });
        };
        if self.frame != NONE {
            self.return_gap();
            if self.grow_in_place(wanted) {
                return Ok(());
            }
        }
        if self.spill.is_none() {
            let carved = self.find(wanted);
            if carved.is_somewhere() {
                self.move_frame(carved, len);
                return Ok(());
            }
        }
        match self.spill_frame(wanted, len) {
            Ok(()) => Ok(()),
            Err(error) => self.squeeze_frame(wanted, len, error),
        }
    }

    /// Moves the frame of `len` bytes to a new buffer of the fallback's, with room for `wanted` bytes. The
    /// error is the fallback's own.
    #[cfg_attr(feature = "track", track_caller)]
    fn spill_frame(&mut self, wanted: usize, len: usize) -> Result<(), AcquireError> {
        // Room to grow, because the next step would move again.
        let roomy = if len == 0 { wanted } else { wanted.max(len.saturating_mul(2)).min(size::MAX_BYTES) };
        let with_room = if roomy > wanted { self.ask_fallback(roomy).ok() } else { None };
        let mut spill = match with_room {
            Some(spill) => spill,
            None => self.ask_fallback(wanted)?,
        };
        let room = spill.spare_mut();
        copy_bytes(&mut room[..len], self.filled());
        let (first, bytes) = (NonNull::from(&mut *room).cast::<u8>(), room.len());
        self.close_frame();
        self.frame_first = first;
        // SAFETY: `len` bytes were just copied there.
        self.frame_next = unsafe { first.add(len) };
        self.frame_limit = first.addr().get() + bytes;
        let old = self.spill.replace(spill);
        // Last, because it is the user's code (E1 of `elsewhere`).
        drop(old);
        Ok(())
    }

    /// Makes room for `wanted` bytes in the region, wherever that is, for a frame of `len` bytes that the
    /// fallback has refused with `error`.
    fn squeeze_frame(&mut self, wanted: usize, len: usize, error: AcquireError) -> Result<(), AcquireError> {
        let is_in_region = self.frame != NONE;
        // Buffers may have come back while the fallback was asked.
        if is_in_region && self.grow_in_place(wanted) {
            return Ok(());
        }
        let largest = match self.go_round(wanted) {
            Ok(carved) => {
                self.move_frame(carved, len);
                return Ok(());
            }
            Err(largest) => largest,
        };
        let in_place = if is_in_region {
            let slots = self.table.slots();
            let start = self.align(slots.end(slots.prev(self.frame)));
            slots.start(slots.next(self.frame)).saturating_sub(start)
        } else {
            len + self.frame_room()
        };
        Err(self.refusal(error, wanted, len, largest.max(in_place)))
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

    /// Opens the frame in a place that was just carved, or moves it there with its `len` bytes.
    fn move_frame(&mut self, carved: Carved, len: usize) {
        let (old, spill) = (self.frame, self.spill.take());
        if old != NONE || spill.is_some() {
            self.copy_frame(carved.start);
        }
        if old != NONE {
            self.table.abandon(old, self.frame_end());
        }
        self.place_frame(carved, len);
        // Last, because it is the user's code (E1 of `elsewhere`).
        drop(spill);
    }

    /// Copies the frame's bytes to `start`; the two places may overlap.
    fn copy_frame(&mut self, start: usize) {
        let from = self.frame_first;
        // SAFETY: the frame owns its bytes, in the region or in `spill`; the other place lies in the region, and is free or its own.
        unsafe { from.copy_to(self.table.byte(start), self.frame_len()) }
    }

    /// [`FrameBuffer::detach`] when there is no open frame in the region.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn detach_spill(&mut self) -> Buf<SlotLease<F::Lease>> {
        if self.spill.is_none() {
            self.forget_frame();
            return self.hand_out_nothing();
        }
        // Before anything changes: it is the user's code.
        let elsewhere = self.out_elsewhere();
        #[cfg(feature = "wipe")]
        self.renew_spill();
        let (first, len) = (self.frame_first.addr().get(), self.frame_len());
        self.forget_frame();
        let Some(mut spill) = self.spill.take().filter(|_| len > 0) else {
            return self.hand_out_nothing();
        };
        let discarded = first - spill.spare_mut().as_ptr().addr();
        spill.commit(discarded + len);
        spill.consume(discarded);
        spill.shrink_to(len);
        self.hand_out_fallback(spill, elsewhere)
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
        self.frame_first = self.table.memory();
        self.frame_next = self.frame_first;
        self.frame_limit = self.frame_first.addr().get();
    }
}

bufcore::frame_methods!(impl[F: BufferPool] SlotPool<F> => SlotLease<F::Lease>);

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

    fn consume(&mut self, bytes: usize) {
        let len = self.frame_len();
        assert!(bytes <= len, "consume({bytes}) of a frame of {len} bytes");
        // SAFETY: within the frame, or at its end.
        self.frame_first = unsafe { self.frame_first.add(bytes) };
    }

    /// Cost: nothing, unless the pool wipes.
    fn truncate(&mut self, len: usize) {
        let Some(cut) = self.frame_len().checked_sub(len).filter(|&cut| cut > 0) else { return };
        #[cfg(feature = "wipe")]
        self.wipe_cut(cut);
        // SAFETY: the frame has so many bytes at its end (P5).
        self.frame_next = unsafe { self.frame_next.sub(cut) };
    }

    /// # Errors
    ///
    /// Never: the open frame has its place already.
    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        if self.frame == NONE {
            return Ok(self.detach_spill());
        }
        // Before anything changes: it is the user's code.
        let elsewhere = self.out_elsewhere();
        self.return_gap();
        let carved = Carved { slot: self.frame, start: self.frame_start() };
        let len = self.frame_len();
        if len == 0 {
            // An empty buffer holds nothing.
            self.close_frame();
            return Ok(self.hand_out_nothing());
        }
        // All of it, with the front that was discarded: that is what is out, and what a wipe has to reach.
        let taken = self.frame_end() - self.table.slots().start(self.frame);
        self.table.set_capacity(self.frame, taken);
        self.forget_frame();
        let mut buf = self.hand_out(carved, len, taken, elsewhere);
        buf.commit(len);
        Ok(buf)
    }
}
