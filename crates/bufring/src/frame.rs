//! Frames: bytes that grow in place into the free blocks behind them.
//!
//! # Invariants
//!
//! - F1: an open frame's `at` is a live guard of the ring that no lease has; a closed one's is the
//!   guard at the front.
//! - F2: `start <= next <= limit`, all in the block of `at`; `limit` is where the block ends. All
//!   are the same in a closed frame, which so has no room.

use core::ptr::NonNull;

use bufcore::{AcquireError, Buf, FrameBuffer};

use crate::ring::{At, Ring, UNIT};
use crate::{RingLease, RingPool};

/// A place that is being filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The guard of its block (F1).
    pub(crate) at: At,
    /// Its first byte; what was discarded is in front of it.
    pub(crate) start: NonNull<u8>,
    /// Behind its last byte.
    pub(crate) next: NonNull<u8>,
    /// The address up to which it can grow without asking.
    pub(crate) limit: usize,
}

impl Frame {
    #[inline(always)]
    pub(crate) fn closed(ring: &Ring) -> Self {
        let nowhere = ring.data(ring.front());
        Self { at: ring.front(), start: nowhere, next: nowhere, limit: nowhere.addr().get() }
    }

    #[inline(always)]
    pub(crate) fn is_open(&self, ring: &Ring) -> bool {
        self.at != ring.front()
    }

    /// Returns the number of the frame's bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.next.addr().get() - self.start.addr().get()
    }

    /// Returns how many bytes the frame can grow by without asking.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.limit - self.next.addr().get()
    }

    /// Counts `bytes` more, for which there is room, and returns where they start.
    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: usize) -> NonNull<u8> {
        debug_assert!(bytes <= self.room(), "{bytes} of {}", self.room());
        let lent = self.next;
        // SAFETY: the block reaches to `limit` (F2).
        self.next = unsafe { lent.add(bytes) };
        lent
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, self.len())
    }

    pub(crate) fn consume(&mut self, ring: &Ring, bytes: usize) {
        let len = self.len();
        assert!(bytes <= len, "consume({bytes}) of a frame of {len} bytes");
        // SAFETY: at most `next` (F2).
        self.start = unsafe { self.start.add(bytes) };
        if bytes == len && self.is_open(ring) {
            // Nothing is left: the place is used from its start again.
            let first = ring.data(self.at);
            ring.wipe(first, self.next);
            (self.start, self.next) = (first, first);
        }
    }

    pub(crate) fn truncate(&mut self, ring: &Ring, len: usize) {
        let Some(cut) = self.len().checked_sub(len).filter(|&cut| cut > 0) else { return };
        let end = self.next;
        // SAFETY: the frame has `cut` bytes at its end (F2).
        self.next = unsafe { end.sub(cut) };
        ring.wipe(self.next, end);
    }

    /// Sets the limit to the end of the frame's block, whose size has changed.
    #[inline]
    fn reach(&mut self, ring: &Ring) {
        self.limit = ring.block_end(self.at).addr().get();
    }

    /// Returns the bytes of the frame's block up to the end of what is filled.
    fn used(&self, ring: &Ring) -> usize {
        self.next.addr().get() - ring.data(self.at).addr().get()
    }
}

impl RingPool {
    /// Opens a frame in a block that has room for `bytes` bytes, at least one, and may be much
    /// larger.
    #[inline]
    pub(crate) fn open(&mut self, bytes: usize) -> Result<Frame, AcquireError> {
        match self.take_whole(bytes) {
            Some(at) => {
                let start = self.ring.data(at);
                Ok(Frame { at, start, next: start, limit: self.ring.next(at).addr().get() })
            }
            None => Err(self.refuse(bytes, 0, 0)),
        }
    }

    /// Makes the frame of no bytes in a block that was just occupied.
    fn frame_at(&self, at: At) -> Frame {
        let start = self.ring.data(at);
        let mut frame = Frame { at, start, next: start, limit: 0 };
        frame.reach(&self.ring);
        frame
    }

    /// Gives `frame` room for `additional` bytes more. It is unchanged by a failure.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow_frame(&mut self, frame: &mut Frame, additional: usize) -> Result<(), AcquireError> {
        if additional <= frame.room() {
            return Ok(());
        }
        if !frame.is_open(&self.ring) {
            *frame = self.open(additional)?;
            return Ok(());
        }
        let len = frame.len();
        if additional > self.capacity - len {
            return Err(self.refuse(additional, len, 0));
        }
        if self.grow_in_place(frame, additional) {
            return Ok(());
        }
        // What these leave may be beside the frame.
        self.close_lent();
        self.return_gap();
        let moved = self.grow_in_place(frame, additional)
            || self.slide(frame, additional, false)
            || self.move_away(frame, additional)
            || self.slide(frame, additional, true);
        if moved {
            return Ok(());
        }
        let reach = self.slides_to(frame, true).1 - len;
        Err(self.refuse(additional, len, reach))
    }

    /// Takes the free blocks behind the frame into its own.
    fn grow_in_place(&mut self, frame: &mut Frame, additional: usize) -> bool {
        let used = frame.used(&self.ring);
        let Some(wanted) = used.checked_add(additional).filter(|&wanted| wanted <= self.capacity) else {
            return false;
        };
        let units = self.grid.units(wanted);
        let enough = self.widen(frame.at, units) >= units
            || (self.ring.next(frame.at) == self.ring.end()
                && !self.goes_to_front(wanted)
                && self.extend_from(frame.at, units));
        self.move_to(frame.at);
        frame.reach(&self.ring);
        enough
    }

    /// Returns whether a frame at the end of the ring, which is to have `wanted` bytes, goes to the
    /// front, and the end does not move up for it. It does where the front has room for twice as
    /// many, so that it does not move again soon. Otherwise each frame that comes to the end would
    /// move it up, until there is no more.
    fn goes_to_front(&self, wanted: usize) -> bool {
        self.is_room_near_front(self.grid.units(wanted.saturating_mul(2).min(self.capacity)))
    }

    /// Returns the first of the free blocks in front of the frame, or its own, and the bytes from
    /// there to the frame's limit. If the frame is at the end and that `moves`, these are the bytes
    /// up to the last place that it can have.
    fn slides_to(&self, frame: &Frame, moves: bool) -> (At, usize) {
        let mut first = frame.at;
        while self.ring.is_free(self.ring.before(first)) {
            first = self.ring.before(first);
        }
        let unused =
            if moves && self.ring.next(frame.at) == self.ring.end() { self.ring.unused() } else { 0 };
        (first, frame.limit + unused * UNIT - self.ring.data(first).addr().get())
    }

    /// Moves the frame down over the free blocks in front of it, and over what was discarded of it.
    /// If the frame is at the end, that `moves` up for it.
    fn slide(&mut self, frame: &mut Frame, additional: usize, moves: bool) -> bool {
        let (first, room) = self.slides_to(frame, moves);
        let wanted = frame.len() + additional;
        if wanted > room {
            return false;
        }
        // Before the bytes move, because they may go where the guards are.
        let end = self.ring.next(frame.at);
        self.ring.merge_to(first, end);
        self.forget_merged(first, end);
        self.ring.occupy(first);
        let old = *frame;
        self.copy(frame, first);
        self.ring.wipe(frame.next, old.next);
        if wanted > frame.limit - frame.start.addr().get() {
            self.extend_from(first, self.grid.units(wanted));
            frame.reach(&self.ring);
        }
        self.move_to(first);
        true
    }

    /// Moves the frame to another place with room for `additional` bytes more; for twice its bytes
    /// if there is one, because the next step would move it again.
    fn move_away(&mut self, frame: &mut Frame, additional: usize) -> bool {
        let wanted = frame.len() + additional;
        let roomy = wanted.saturating_mul(2).min(self.capacity);
        let found = self.find(self.grid.units(roomy)).or_else(|| self.find(self.grid.units(wanted)));
        let Some(at) = found else { return false };
        self.ring.occupy(at);
        self.move_to(at);
        let old = *frame;
        self.copy(frame, at);
        self.ring.abandon(old.at, old.next);
        true
    }

    /// Copies the frame's bytes to the start of a block of its own, which may overlap the old one,
    /// and has it there.
    fn copy(&self, frame: &mut Frame, at: At) {
        let (len, old) = (frame.len(), frame.start);
        *frame = self.frame_at(at);
        frame.advance(len);
        // SAFETY: both places lie in the region; the frame owned the one and owns the other.
        unsafe { old.copy_to(frame.start, len) }
    }

    /// Cuts the frame's block down to what is filled, and hands it out. A frame without bytes lets
    /// its block go: an empty buffer holds nothing.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn finish(&mut self, frame: Frame) -> Buf<RingLease> {
        // As a closed frame is.
        if frame.len() == 0 {
            return self.finish_empty(frame);
        }
        self.cut(frame.at, frame.used(&self.ring));
        let mut buf = self.hand_out(frame.at, frame.start, frame.len());
        buf.commit(frame.len());
        buf
    }

    /// Finishes a frame of no bytes.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn finish_empty(&mut self, frame: Frame) -> Buf<RingLease> {
        self.close(frame);
        self.hand_out_nothing()
    }

    /// Cuts a frame's block down to its first `used` bytes.
    #[inline]
    fn cut(&mut self, at: At, used: usize) {
        self.ring.split(at, self.grid.units(used));
        // The newest block may have been this one.
        self.head = self.ring.next(self.newest);
    }

    /// Gives back what the open frame could grow into.
    pub(crate) fn return_gap(&mut self) {
        if self.frame.is_open(&self.ring) {
            self.cut_open();
        }
    }

    #[cold]
    #[inline(never)]
    fn cut_open(&mut self) {
        // A block has a byte at least.
        self.cut(self.frame.at, self.frame.used(&self.ring).max(1));
        self.frame.reach(&self.ring);
    }

    /// Lets a frame go.
    pub(crate) fn close(&self, frame: Frame) {
        if frame.is_open(&self.ring) {
            self.ring.abandon(frame.at, frame.next);
        }
    }

    /// Lets the open frame go.
    pub(crate) fn close_frame(&mut self) {
        let frame = core::mem::replace(&mut self.frame, Frame::closed(&self.ring));
        self.close(frame);
    }

    /// Lets the frame go that a forgotten `Extendable` has left behind.
    pub(crate) fn close_lent(&mut self) {
        let at = core::mem::replace(&mut self.lent, self.ring.front());
        if at != self.ring.front() {
            // How much of it was written is not known.
            self.ring.abandon(at, self.ring.block_end(at));
        }
    }
}

bufcore::frame_methods!(impl[] RingPool => RingLease);

impl FrameBuffer for RingPool {
    type Lease = RingLease;

    /// Appends `additional` bytes to the open frame and lends them to be written.
    ///
    /// Cost: one comparison and one store while the frame can grow in place. Otherwise it takes in
    /// the free blocks behind it, or moves, with its bytes.
    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if additional > self.frame.room() {
            let mut frame = core::mem::replace(&mut self.frame, Frame::closed(&self.ring));
            let grown = self.grow_frame(&mut frame, additional);
            self.frame = frame;
            grown?;
        }
        let lent = self.frame.advance(additional);
        // SAFETY: these bytes are in the frame's block (F2), initialised and nobody else's, and the
        // borrow of the allocator keeps the frame from moving.
        Ok(unsafe { core::slice::from_raw_parts_mut(lent.as_ptr(), additional) })
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        // SAFETY: the bytes of the open frame, or none: in a live block that nobody else has (F1,
        // F2).
        unsafe { self.frame.bytes().as_ref() }
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `filled`, and the borrow of the allocator makes this the only one.
        unsafe { self.frame.bytes().as_mut() }
    }

    fn consume(&mut self, bytes: usize) {
        self.frame.consume(&self.ring, bytes);
    }

    /// Keeps the first `len` bytes of the open frame.
    ///
    /// Cost: nothing, unless the ring wipes.
    fn truncate(&mut self, len: usize) {
        self.frame.truncate(&self.ring, len);
    }

    /// Closes the frame and returns its bytes as an owned buffer.
    ///
    /// # Errors
    ///
    /// Never: the open frame has its place already.
    #[inline]
    fn detach(&mut self) -> Result<Buf<RingLease>, AcquireError> {
        let frame = core::mem::replace(&mut self.frame, Frame::closed(&self.ring));
        Ok(self.finish(frame))
    }
}
