//! Buffers that grow: in place into the free blocks behind them, or elsewhere in the ring; and that
//! give back what they have not filled.
//!
//! The invariants P1 and P2 of `pool` are kept here.

use bufcore::author::Growth;
use bufcore::{AcquireError, Buf, PoolStats};

use crate::ring::{GuardPtr, UNIT, may_nest};
use crate::{RingLease, RingPool};

impl RingPool {
    /// Gives `buf` room for `additional` bytes, more than it has; all that is free behind it, if it
    /// takes the `most`.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn make_room(
        &mut self,
        buf: &mut Buf<RingLease>,
        additional: usize,
        most: bool,
    ) -> Result<(), AcquireError> {
        let Some(mut growth) = Growth::of(buf, additional, self.capacity)? else { return Ok(()) };
        growth.roomy = growth.roomy.min(self.capacity.max(growth.least));
        if self.grow_in_place(buf, growth, most) {
            return Ok(());
        }
        let roomy = (growth.roomy > growth.least).then_some(growth.roomy);
        for bytes in roomy.into_iter().chain([growth.least]) {
            if let Some(at) = self.take(bytes) {
                let mut larger = self.hand_out(at, bytes);
                let moved = larger.extend_from_slice(buf);
                debug_assert!(moved.is_ok(), "{} bytes do not fit in {bytes}", buf.len());
                *buf = larger;
                return Ok(());
            }
        }
        let reach = self.block_alone(buf).map_or(0, |at| self.most_in_place(at)).saturating_sub(growth.len);
        Err(self.refuse(additional, growth.len, reach.max(growth.spare)))
    }

    /// Returns the block of this ring of which `buf` has all.
    #[inline]
    fn block_alone(&self, buf: &Buf<RingLease>) -> Option<GuardPtr> {
        buf.lease().alone().filter(|&at| self.has(at))
    }

    /// Returns whether the guard of a live block is one of this ring's.
    #[inline]
    fn has(&self, at: GuardPtr) -> bool {
        at == self.newest
            || (self.ring.front() < at && at < self.ring.end() && (!may_nest() || self.is_listed(at)))
    }

    /// Returns whether an address between the ends is that of a guard of this ring. It reads the
    /// ring's own guards only, from the newest block on.
    #[cold]
    #[inline(never)]
    fn is_listed(&self, at: GuardPtr) -> bool {
        let mut near = self.newest;
        while near < at {
            near = self.ring.next(near);
        }
        while near > at {
            near = self.ring.before(near);
        }
        near == at
    }

    /// Returns the guard behind the block and the free ones behind that.
    fn free_to(&self, at: GuardPtr) -> GuardPtr {
        let mut end = self.ring.next(at);
        while self.ring.is_free(end) {
            end = self.ring.next(end);
        }
        end
    }

    /// Returns the bytes that the block has with the free ones behind it, up to the guard `end`.
    fn reach(&self, at: GuardPtr, end: GuardPtr) -> usize {
        end.addr().get() - self.ring.data(at).addr().get()
    }

    /// Returns the bytes that the block could have where it is.
    fn most_in_place(&self, at: GuardPtr) -> usize {
        let end = self.free_to(at);
        let unused = if end == self.ring.end() { self.ring.unused() } else { 0 };
        self.reach(at, end) + unused * UNIT
    }

    /// Returns the bytes of a buffer's block in front of the buffer's first one.
    #[inline]
    fn front_of(&self, at: GuardPtr, buf: &Buf<RingLease>) -> usize {
        buf.as_ptr().addr() - self.ring.data(at).addr().get()
    }

    /// Takes the free blocks behind the buffer into its own, as many as it wants.
    fn grow_in_place(&mut self, buf: &mut Buf<RingLease>, growth: Growth, most: bool) -> bool {
        let Some(at) = self.block_alone(buf) else { return false };
        let (front, old) = (self.front_of(at, buf), self.ring.room(at));
        let end = self.free_to(at);
        let mut reach = self.reach(at, end);
        // At the end a buffer goes to the front, if there is room. Otherwise each would move the
        // end up, until there is no more.
        if growth.least > reach - front
            && end == self.ring.end()
            && !self.is_room_near_front(self.grid.units(growth.roomy))
            && (self.extend_from(at, self.grid.units(front + growth.roomy))
                || self.extend_from(at, self.grid.units(front + growth.least)))
        {
            reach = self.reach(at, self.ring.end());
        }
        if growth.least > reach - front {
            return false;
        }
        let old_end = self.ring.block_end(at);
        self.widen(at, usize::MAX);
        self.move_to(at);
        if !most {
            let bytes = front + growth.roomy.min(reach - front);
            // SAFETY: so many bytes are in the block.
            let end = unsafe { self.ring.data(at).add(bytes) };
            // A buffer that was cut down by its user has more of its block than it needs.
            self.ring.wipe(end, old_end);
            self.cut(at, bytes);
        }
        self.count_resized(at, old);
        let capacity = self.ring.room(at) - front;
        // SAFETY: the bytes lie in the buffer's block, which is initialised (R1), and stays live
        // until the lease is dropped.
        unsafe { buf.set_capacity(capacity) };
        true
    }

    /// Gives the place of a buffer behind the filled bytes back, if the buffer has all of a block.
    #[inline]
    pub(crate) fn give_back(&mut self, buf: &mut Buf<RingLease>) {
        if let Some(at) = self.block_alone(buf) {
            let old = self.ring.room(at);
            let used = self.front_of(at, buf) + buf.len();
            // SAFETY: so many bytes are in the buffer's block.
            let filled_to = unsafe { self.ring.data(at).add(used) };
            self.ring.wipe(filled_to, self.ring.block_end(at));
            // A block has at least one byte.
            self.cut(at, used.max(1));
            self.count_resized(at, old);
        }
        buf.shrink_to(0);
    }

    /// Cuts the block of a buffer that the caller has alone down to `bytes` bytes.
    #[inline]
    fn cut(&mut self, at: GuardPtr, bytes: usize) {
        if let Some(rest) = self.ring.split(at, self.grid.units(bytes))
            && at == self.newest
        {
            self.head = rest;
        }
    }

    /// Counts the bytes of a live block, which had `old` bytes before.
    #[inline]
    fn count_resized(&mut self, at: GuardPtr, old: usize) {
        self.counters.resized(old, self.ring.room(at), self.ring.released(), &PoolStats::default());
    }
}
