//! Buffers that grow: in place into the gap behind them, elsewhere in the region, or with the
//! fallback; and that give back what they have not filled.
//!
//! The invariants P1 to P4 of `pool` are kept here, and E1 of `fallback`.

use bufcore::author::Growth;
use bufcore::{AcquireError, Buf, BufferPool, PoolStats};

use crate::lease::SlotLease;
use crate::pool::SlotPool;
use crate::table::NONE;

impl<F: BufferPool> SlotPool<F> {
    /// Gives `buf` room for `additional` bytes, more than it has; all of the gap behind it, if it
    /// takes the `most`.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn make_room(
        &mut self,
        buf: &mut Buf<SlotLease<F::Lease>>,
        additional: usize,
        most: bool,
    ) -> Result<(), AcquireError> {
        self.make_room_for(buf, additional)?;
        if most {
            self.take_gap(buf);
        }
        if let Some(at) = self.slot_alone(buf) {
            self.note_gap(at);
        }
        Ok(())
    }

    /// Gives the buffer all of the gap behind it.
    #[inline]
    pub(crate) fn take_gap(&mut self, buf: &mut Buf<SlotLease<F::Lease>>) {
        if let Some(at) = self.slot_alone(buf) {
            let slots = self.table.slots();
            self.resize(buf, at, slots.start(slots.next(at)), &PoolStats::default());
        }
    }

    #[cfg_attr(feature = "track", track_caller)]
    fn make_room_for(
        &mut self,
        buf: &mut Buf<SlotLease<F::Lease>>,
        additional: usize,
    ) -> Result<(), AcquireError> {
        // Before anything changes: these are the user's code.
        let (limit, fallback_stats) = (self.max_capacity(), self.fallback_stats());
        let Some(growth) = Growth::of(buf, additional, limit)? else { return Ok(()) };
        if self.grow_in_place(buf, growth, &fallback_stats) {
            return Ok(());
        }
        let roomy = (growth.roomy > growth.least).then_some(growth.roomy);
        for bytes in roomy.into_iter().chain([growth.least]) {
            let carved = self.find(bytes);
            if carved.is_somewhere() {
                replace(buf, self.hand_out(carved, bytes, bytes, fallback_stats));
                return Ok(());
            }
        }
        let more = roomy.and_then(|bytes| self.ask_fallback(bytes).ok());
        let asked = more.map_or_else(|| self.ask_fallback(growth.least), Ok);
        let fallback_stats = self.fallback_stats();
        match asked {
            Ok(larger) => replace(buf, self.hand_out_fallback(larger, fallback_stats)),
            Err(error) => match self.search_all(growth.least) {
                Ok(carved) => replace(buf, self.hand_out(carved, growth.least, growth.least, fallback_stats)),
                // Buffers may have come back while the fallback was asked.
                Err(_) if self.grow_in_place(buf, growth, &fallback_stats) => {}
                Err(largest) => {
                    let largest = largest.max(self.room_in_place(buf)).max(growth.len + growth.spare);
                    return Err(self.refusal(error, growth.least, growth.len, largest));
                }
            },
        }
        Ok(())
    }

    /// Returns the slot of this pool of which `buf` has all.
    #[inline]
    fn slot_alone(&self, buf: &Buf<SlotLease<F::Lease>>) -> Option<u32> {
        self.table.position_of(buf.lease().slot_alone()?)
    }

    /// Lets the buffer grow into the gap behind it, with the free slots there.
    fn grow_in_place(
        &mut self,
        buf: &mut Buf<SlotLease<F::Lease>>,
        growth: Growth,
        fallback_stats: &PoolStats,
    ) -> bool {
        let Some(at) = self.slot_alone(buf) else { return false };
        self.take_freed();
        let start = buf.as_ptr().addr();
        let mut room = self.widen(at) - start;
        // The end moves up, if no live slot is behind the buffer.
        if growth.least > room
            && self.table.slots().next(at) == self.sentinel()
            && !self.goes_to_front(growth)
            && (self.extend_to(start.saturating_add(growth.roomy))
                || self.extend_to(start.saturating_add(growth.least)))
        {
            room = self.table.end() - start;
        }
        if growth.least > room {
            return false;
        }
        self.resize(buf, at, start + growth.roomy.min(room), fallback_stats);
        true
    }

    /// Returns whether a buffer at the end, which grows, goes to the front of the region, and the
    /// end does not move up for it. Otherwise each buffer that comes to the end would move it up,
    /// until there is no more.
    fn goes_to_front(&mut self, growth: Growth) -> bool {
        // A place there takes a slot.
        self.is_room_near_front(growth.roomy) && self.free != NONE
    }

    /// Returns the bytes that the buffer could have where it is; none if it is not in the region.
    fn room_in_place(&self, buf: &Buf<SlotLease<F::Lease>>) -> usize {
        self.slot_alone(buf).map_or(0, |at| self.gap_limit(at) - buf.as_ptr().addr())
    }

    /// Gives the place of a buffer behind the filled bytes back, if the buffer has all of a slot.
    #[inline]
    pub(crate) fn give_back(&mut self, buf: &mut Buf<SlotLease<F::Lease>>) {
        if let Some(at) = self.slot_alone(buf) {
            // A slot in the list has at least one byte (P2).
            let filled = buf.as_ptr().addr() + buf.len();
            let end = filled.max(self.table.slots().start(at) + 1);
            self.move_end(at, end, &PoolStats::default());
            self.note_gap(at);
        }
        buf.shrink_to(0);
    }

    /// Ends the slot and its buffer at the address `end`, as [`move_end`](Self::move_end) does.
    #[inline]
    fn resize(
        &mut self,
        buf: &mut Buf<SlotLease<F::Lease>>,
        at: u32,
        end: usize,
        fallback_stats: &PoolStats,
    ) {
        self.move_end(at, end, fallback_stats);
        let capacity = end - buf.as_ptr().addr();
        // SAFETY: the bytes up to `end` are the slot's, or were in the gap behind it, which has no
        // live slot's bytes (P2). They were initialised with the region. The slot is live until the
        // lease is dropped.
        unsafe { buf.set_capacity(capacity) };
    }

    /// Ends the slot at the address `end`, which is behind the filled bytes of its buffer and at
    /// most where the slot behind it starts.
    #[inline]
    fn move_end(&mut self, at: u32, end: usize, fallback_stats: &PoolStats) {
        let slots = self.table.slots();
        let (first, old) = (slots.start(at), slots.end(at));
        debug_assert!(end <= slots.start(slots.next(at)), "{end:#x} is in the slot behind");
        self.table.wipe(end, old);
        slots.set_end(at, end);
        self.counters.resized(old - first, end - first, self.table.released(), fallback_stats);
    }
}

/// Moves the filled bytes of `buf` to `larger`, which has room for them and replaces it.
fn replace<L: bufcore::Lease>(buf: &mut Buf<L>, mut larger: Buf<L>) {
    let moved = larger.extend_from_slice(buf);
    debug_assert!(moved.is_ok(), "{} bytes do not fit in {}", buf.len(), larger.capacity());
    // Last, because the old buffer may be the fallback's, whose release is the user's code (E1).
    *buf = larger;
}
