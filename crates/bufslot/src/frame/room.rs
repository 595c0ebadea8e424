//! Room for a frame that has to grow: in place, elsewhere in the region, or with the fallback.

use core::ptr::NonNull;

use bufcore::strategy::copy_bytes;
use bufcore::{AcquireError, BufferPool, FrameBuffer, size};

use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

impl<F: BufferPool> SlotPool<F> {
    /// Sees to it that the frame can grow by `additional` bytes, more than it can already.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(super) fn make_room(&mut self, additional: usize) -> Result<(), AcquireError> {
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
            // Twice as many first, where it moves although it could have stayed.
            let roomy = Some(Self::roomy(wanted)).filter(|_| self.frame != NONE && self.has_unused());
            for bytes in roomy.into_iter().chain([wanted]) {
                let carved = self.find(bytes);
                if carved.is_somewhere() {
                    self.move_frame(carved, len);
                    return Ok(());
                }
            }
        }
        match self.spill_frame(wanted, len) {
            Ok(()) => Ok(()),
            Err(error) => self.squeeze_frame(wanted, len, error),
        }
    }

    /// Moves the frame of `len` bytes to a new buffer of the fallback's, with room for `wanted`
    /// bytes. The error is the fallback's own.
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
        // Last, because it is the user's code (E1 of `fallback`).
        drop(old);
        Ok(())
    }

    /// Makes room for `wanted` bytes in the region, wherever that is, for a frame of `len` bytes
    /// that the fallback has refused with `error`.
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
            self.gap_limit(self.frame).saturating_sub(start)
        } else {
            len + self.frame_room()
        };
        Err(self.refusal(error, wanted, len, largest.max(in_place)))
    }

    /// Opens, or moves, the frame to a place that was just carved, where it has `len` bytes, and
    /// lets it have the gap behind.
    fn place_frame(&mut self, carved: Carved, len: usize) {
        self.frame = carved.slot;
        self.frame_first = self.table.byte(carved.start);
        // A frame grows without gaps: whatever else was carved for it, or put behind it as stagger,
        // is its to grow into.
        self.frame_next = self.table.byte(carved.start + len);
        self.borrow_gap();
    }

    /// Lets the frame grow to `wanted` bytes into the gap behind it, sliding down over what has
    /// become free before it.
    fn grow_in_place(&mut self, wanted: usize) -> bool {
        debug_assert!(!self.gap_borrowed);
        self.tail = self.frame;
        let mut limit = self.widen(self.tail);
        let (len, end, mut start) = (self.frame_len(), self.frame_end(), self.frame_start());
        let extends = wanted > limit - start && self.is_tail_last() && !self.goes_to_front(wanted);
        if extends && self.extend_to(start.saturating_add(wanted)) {
            limit = self.table.end();
        }
        if wanted > limit - start {
            let mut before = self.table.slots().prev(self.frame);
            while self.table.slots().is_free(before) {
                let first = self.table.slots().prev(before);
                self.let_go(before);
                before = first;
            }
            start = self.align(self.table.slots().end(before));
            if extends && self.extend_to(start.saturating_add(wanted)) {
                limit = self.table.end();
            }
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

    /// Returns the bytes that a frame of `wanted` bytes looks for where it moves, so that it does
    /// not move again soon.
    fn roomy(wanted: usize) -> usize {
        wanted.saturating_mul(2).min(size::MAX_BYTES)
    }

    /// Returns whether a frame at the end, which is to have `wanted` bytes, goes to the front of
    /// the region, and the end does not move up for it. Otherwise each frame that comes to the end
    /// would move it up, until there is no more.
    fn goes_to_front(&mut self, wanted: usize) -> bool {
        // A place there takes a slot.
        self.is_room_near_front(Self::roomy(wanted)) && self.free != NONE
    }

    /// Opens the frame in a place that was just carved, or moves it there with its `len` bytes.
    fn move_frame(&mut self, carved: Carved, len: usize) {
        let (old, spill) = (self.frame, self.spill.take());
        if old != NONE || spill.is_some() {
            self.copy_frame(carved.start);
        }
        if old != NONE {
            self.abandon(old);
        }
        self.place_frame(carved, len);
        // Last, because it is the user's code (E1 of `fallback`).
        drop(spill);
    }

    /// Copies the frame's bytes to `start`; the two places may overlap.
    fn copy_frame(&mut self, start: usize) {
        let from = self.frame_first;
        // SAFETY: the frame owns its bytes, in the region or in `spill`; the other place lies in
        // the region, and is free or its own.
        unsafe { from.copy_to(self.table.byte(start), self.frame_len()) }
    }
}
