//! The piece larger than a shard that a thread has to itself, and what others take out of caches
//! without stopping their threads.
//!
//! # Who uses the piece
//!
//! `large` leads to a piece that the cache's thread owns, whose buffer is out or back. A release of
//! the buffer is that of any shard, and does not need the cache. Only the cache's thread puts a
//! link in, and whoever takes it out does so by an exchange, for good.
//!
//! The thread uses the piece again without a locked instruction. It announces that in `is_busy`,
//! looks whether somebody claims the pieces of the pool (`Shared::claims`), and then follows the
//! link. Another thread that wants the piece claims all pieces first, and looks whether the thread
//! is at work. Between the two steps of each there is a fence (`bufkit::sync::fences`), so not
//! both can miss the other. A thread that finds its piece claimed does without it for that one
//! request. A thread that finds the owner at work, or the buffer out, leaves the piece alone. So
//! does the owner when it is about to put another piece in.

use core::ptr::{self, NonNull};

use bufkit::sync::Ordering;
use bufkit::sync::fences;

use super::ThreadCache;
use crate::settings::MOST_SPARES;
use crate::shard::{Block, Chain, Shard};
use crate::shared::Shared;

/// In `Shared::claims` for good where the system has no fence that costs one side nothing.
pub(crate) const PLAIN: usize = 1 << (usize::BITS - 1);
/// In `Shared::claims` while a thread takes pieces out of caches.
pub(crate) const CLAIMED: usize = 1;

/// What is to be taken out of caches: of what nothing is out of, all, or what was not used since
/// the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Unused,
    Idle,
}

impl ThreadCache {
    /// Uses the thread's piece for a request larger than a shard, if it was released and fits. The
    /// caller is the cache's thread, and holds a handle.
    pub(crate) fn reuse(&self, bytes: usize) -> Option<NonNull<Block>> {
        self.begin();
        fences::full();
        self.reuse_begun(self.shared(), bytes, PLAIN)
    }

    /// Carves a block as `reuse` does, with the fence that costs nothing. Returns `None` where the
    /// system has no fence for the other side. `shared` is the pool's bookkeeping.
    #[inline(always)]
    pub(crate) fn reuse_at_once(&self, shared: &Shared, bytes: usize) -> Option<NonNull<Block>> {
        self.begin();
        fences::light();
        self.reuse_begun(shared, bytes, 0)
    }

    #[inline(always)]
    fn begin(&self) {
        // ORDER: Relaxed: the fence that follows orders it.
        self.is_busy.store(1, Ordering::Relaxed);
    }

    /// Completes a reuse that has begun. `unclaimed` is the value of `claims` while nobody claims
    /// the pieces.
    #[inline(always)]
    fn reuse_begun(&self, shared: &Shared, bytes: usize, unclaimed: usize) -> Option<NonNull<Block>> {
        // ORDER: Acquire pairs with the Release in `Shared::unclaim`: what was taken is gone from
        // here.
        let claims = shared.claims.load(Ordering::Acquire);
        let block = if claims & !unclaimed == 0 { self.reuse_own(shared, bytes) } else { None };
        // ORDER: Release pairs with the Acquire in `reach`: whoever takes the piece sees that its
        // buffer is out.
        self.is_busy.store(0, Ordering::Release);
        block
    }

    /// Carves a block in the thread's piece while nobody else takes that piece.
    #[inline(always)]
    fn reuse_own(&self, shared: &Shared, bytes: usize) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: what is there this thread put in itself.
        let piece = self.large.load(Ordering::Relaxed);
        // SAFETY: the thread's (N5), and nobody else takes it now.
        let shard = unsafe { piece.as_ref() }?;
        #[cfg(all(test, loom))]
        shard.life.read();
        if shared.is_stale(shard) { None } else { shard.reuse(bytes) }
    }

    /// Returns whether the thread has a piece, as far as can be seen.
    pub(crate) fn has_piece(&self) -> bool {
        // ORDER: Relaxed: a hint.
        !self.large.load(Ordering::Relaxed).is_null()
    }

    /// Hands out a free piece, which the thread has to itself from then on, if the budget allows
    /// it. The caller is the cache's thread, and holds a handle.
    ///
    /// # Safety
    ///
    /// The piece has memory for `bytes` bytes, nothing of it is out, and it is the caller's alone.
    pub(crate) unsafe fn hand_out(
        &self,
        piece: NonNull<Shard>,
        bytes: usize,
        is_reused: bool,
    ) -> NonNull<Block> {
        // SAFETY: the caller's promise.
        let shard = unsafe { piece.as_ref() };
        let shared = self.shared();
        // A look at it before says nothing of its use from here on.
        shard.set_seen(false);
        self.begin();
        fences::full();
        // ORDER: Acquire, as in `reuse_begun`.
        let is_claimed = shared.claims.load(Ordering::Acquire) & !PLAIN != 0;
        let before = if is_claimed { None } else { self.take_large() };
        let block = if !is_claimed && shared.budget.take_owned(shard.held()) {
            shard.own(super::local::token(), NonNull::from(self).cast());
            let block = shard.whole(bytes, is_reused);
            // ORDER: Release pairs with the Acquire in `reach`: the header is that of the piece.
            self.large.store(piece.as_ptr(), Ordering::Release);
            block
        } else {
            shard.single(bytes, is_reused)
        };
        // ORDER: Release, as in `reuse_begun`.
        self.is_busy.store(0, Ordering::Release);
        // SAFETY: this thread's until now.
        unsafe { Self::let_piece_go(before) };
        block
    }

    /// Gives the thread's piece up: if its buffer is out, to that. The caller is the cache's
    /// thread, and holds a handle.
    pub(crate) fn give_up_large(&self) {
        // SAFETY: this thread's until now.
        unsafe { Self::let_piece_go(self.take_large()) };
    }

    /// Ends the ownership of a piece: if its buffer is out, it is that buffer's. The allocator may
    /// be called.
    ///
    /// # Safety
    ///
    /// The calling thread owns the piece, which is in no cache, and does not use it again.
    unsafe fn let_piece_go(piece: Option<NonNull<Shard>>) {
        if let Some(piece) = piece
            // SAFETY: the caller's promise.
            && unsafe { Shard::abandon(piece) }
        {
            // SAFETY: nothing is out, so it is ours alone.
            unsafe { Shared::come_back(piece) };
        }
    }

    /// Takes the thread's piece out of the cache, whether its buffer is out or not. The caller has
    /// the cache.
    pub(super) fn take_large(&self) -> Option<NonNull<Shard>> {
        // ORDER: Acquire pairs with the Release in `hand_out`.
        let piece = NonNull::new(self.large.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: owned by the cache's thread until it is given up, which is after this.
        let bytes = unsafe { piece.as_ref() }.held();
        self.shared().budget.give_back_owned(bytes);
        Some(piece)
    }

    /// Takes spares and the piece out of the cache of any thread, of which nothing is out, and adds
    /// them to `free`: they are the caller's. `is_claimed` says that the pieces are to be had.
    ///
    /// # Safety
    ///
    /// 1. The caller has a handle of the pool, and visits its headers (`depot`, H3).
    /// 2. One thread at a time asks for what is unused.
    /// 3. With `is_claimed`, `Shared::claim` has returned that, and the claim lasts.
    pub(crate) unsafe fn reach(&self, reach: Reach, is_claimed: bool, free: &mut Chain) {
        if reach == Reach::Unused {
            // SAFETY: the caller's promise.
            unsafe { self.spares.take_unused(free) };
        } else {
            // This number and no more, so that this ends while the thread puts some in all the
            // time.
            for _ in 0..MOST_SPARES {
                let Some(spare) = self.spares.take() else { break };
                // SAFETY: just taken.
                unsafe { free.push(spare) };
            }
        }
        // ORDER: Acquire pairs with the Release in `reuse_begun` and `hand_out`: what the thread
        // did last with the piece is seen.
        if !is_claimed || self.is_busy.load(Ordering::Acquire) != 0 {
            return;
        }
        // ORDER: Acquire pairs with the Release in `hand_out`: the header is that of the piece.
        let found = self.large.load(Ordering::Acquire);
        // SAFETY: found during a visit (H3); only atomics are used.
        let Some(shard) = (unsafe { found.as_ref() }) else { return };
        #[cfg(all(test, loom))]
        shard.life.read();
        // While the claim lasts, the thread takes nothing from the piece and puts no other in. But
        // it may end, and give the piece up.
        let is_back = shard.is_all_back();
        let goes = match reach {
            Reach::Idle => is_back,
            Reach::Unused => self.is_unused(shard, is_back),
        };
        if goes && let Some(taken) = self.take_large() {
            debug_assert!(taken.as_ptr() == found, "N5");
            // SAFETY: nothing is out, and so it is ours alone.
            unsafe { free.push(taken) };
        }
    }

    /// Returns whether the thread's piece was released, as it was at the last look, and was not
    /// used since. Notes what this look sees.
    fn is_unused(&self, piece: &Shard, is_back: bool) -> bool {
        let uses = piece.uses();
        // A piece that was seen was here then, so the number is its own.
        let was_idle = piece.is_seen() && self.large_mark.replace(uses) == uses;
        self.large_mark.set(uses);
        // What is out is in use until its release.
        piece.set_seen(is_back);
        is_back && was_idle
    }
}
