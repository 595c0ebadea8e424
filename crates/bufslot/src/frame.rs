//! Frames: bytes that grow in place in the gap behind them.
//!
//! The invariants P5 to P7 of `pool` are kept here.

mod open;
mod room;
#[cfg(feature = "wipe")]
mod wipe;

use bufcore::{AcquireError, Buf, BufferPool, FrameBuffer};

pub use self::open::OpenFrame;
use crate::lease::SlotLease;
use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

impl<F: BufferPool> SlotPool<F> {
    /// Returns how many bytes the frame can grow by without asking (P6).
    #[inline]
    fn frame_room(&self) -> usize {
        self.frame_limit - self.frame_next.addr().get()
    }

    /// Returns the number of the open frame's bytes.
    #[inline]
    fn frame_len(&self) -> usize {
        self.frame_next.addr().get() - self.frame_first.addr().get()
    }

    /// Returns the address of the open frame's first byte.
    #[inline]
    fn frame_start(&self) -> usize {
        self.frame_first.addr().get()
    }

    /// Returns the address behind the open frame's last byte.
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

    /// Detaches the frame as [`FrameBuffer::detach`] does, when there is no open frame in the
    /// region.
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
            self.abandon(self.frame);
            self.forget_frame();
        }
    }

    /// Frees the slot `at` of the open frame, whose gap was returned. A slot without bytes leaves
    /// the list (P2).
    fn abandon(&mut self, at: u32) {
        self.table.abandon(at, self.frame_end());
        let slots = self.table.slots();
        if slots.start(at) == slots.end(at) {
            self.let_go(at);
        }
    }

    /// Forgets the open frame; what held it has another owner. The gap was returned.
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

    /// Appends `additional` bytes to the open frame and lends them to be written.
    ///
    /// Cost: one comparison and one store while the frame can grow in place. Otherwise it moves
    /// once, with its bytes.
    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        if additional > self.frame_room() {
            self.make_room(additional)?;
        }
        let lent = self.frame_next;
        // SAFETY: the sum is at most `frame_limit`, an address in the frame's memory or one past
        // its end (P6).
        self.frame_next = unsafe { lent.add(additional) };
        // SAFETY: these bytes are what the frame may grow into (P6), or none; they are initialised
        // and nobody else's, and the borrow of the pool keeps the frame from moving.
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

    /// Keeps the first `len` bytes of the open frame.
    ///
    /// Cost: nothing, unless the pool wipes.
    fn truncate(&mut self, len: usize) {
        let Some(cut) = self.frame_len().checked_sub(len).filter(|&cut| cut > 0) else { return };
        #[cfg(feature = "wipe")]
        self.wipe_cut(cut);
        // SAFETY: the frame has `cut` bytes at its end (P5).
        self.frame_next = unsafe { self.frame_next.sub(cut) };
    }

    /// Closes the frame and returns its bytes as an owned buffer.
    ///
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
        // All of it, with the front that was discarded: that is what is out, and what a wipe has to
        // reach.
        let taken = self.frame_end() - self.table.slots().start(self.frame);
        self.table.set_capacity(self.frame, taken);
        self.forget_frame();
        let mut buf = self.hand_out(carved, len, taken, elsewhere);
        buf.commit(len);
        Ok(buf)
    }
}
