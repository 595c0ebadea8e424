//! Requests that the shard which the thread carves did not serve.

use core::ptr::NonNull;

use bufcore::AcquireError;
use bufcore::author::Served;

use crate::cache::{ThreadCache, local};
use crate::counts::Piece;
use crate::shard::{Block, Chain, Shard};
use crate::shared::Shared;

/// A block for a request, with what is known of it.
pub(crate) struct Found {
    pub(crate) block: NonNull<Block>,
    pub(crate) served: Served,
}

impl Shared {
    /// Takes a block in the larger piece that the calling thread has to itself, if that serves the
    /// request. `current` is the shard that the thread carves. The caller holds a handle.
    ///
    /// It is small, and returns an address: so it needs no room on the stack.
    #[cold]
    #[inline(never)]
    pub(crate) fn reuse(&self, current: &Shard, bytes: usize) -> Option<NonNull<Block>> {
        if bytes <= self.settings.shard_bytes {
            return None;
        }
        let cache = current.cache().cast::<ThreadCache>();
        // SAFETY: an owned shard's cache is valid, until its thread has let go of it.
        unsafe { &*cache }.reuse_at_once(self, bytes)
    }

    /// Takes a block of the shard that the calling thread carves, or in its larger piece, where
    /// headers are in a table. (The fast path takes the bytes to be right behind the headers.) The
    /// caller holds a handle.
    pub(crate) fn recall_block(&self, bytes: usize) -> Option<NonNull<Block>> {
        // SAFETY: the shard that this thread carves for this pool is valid (`local`, L1).
        let shard = unsafe { local::shard(self.id)?.as_ref() };
        NonNull::new(shard.carve_in_table(bytes)).or_else(|| self.reuse(shard, bytes))
    }

    /// Finds a block for a request of at least one byte: in another shard, or in memory of its own.
    /// The caller holds a handle.
    pub(crate) fn find(&self, bytes: usize) -> Result<Found, AcquireError> {
        let settings = &self.settings;
        let limit = settings.max_capacity();
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit });
        }
        let found = if bytes <= settings.shard_bytes { self.refill(bytes)? } else { self.large(bytes)? };
        if let Some(found) = found {
            return Ok(found);
        }
        let refused = |_refused| AcquireError::OutOfMemory { requested: bytes };
        let block = self.fresh(bytes, Piece::Allocated).map_err(refused)?.single(bytes, false);
        Ok(Found { block, served: Served::Fallback })
    }

    /// Returns the calling thread's cache, which is made if there is none, or `None` on a thread
    /// that is ending. The caller holds a handle, and serves a request of `bytes` bytes.
    fn cache_here(&self, bytes: usize) -> Result<Option<&ThreadCache>, AcquireError> {
        // SAFETY: a cache of this thread's is valid (`local`, L2).
        if let Some(cache) = unsafe { local::find(self.id).as_ref() } {
            return Ok(Some(cache));
        }
        let Some(token) = local::register() else { return Ok(None) };
        let refused = AcquireError::OutOfMemory { requested: bytes };
        let cache = self.cache(token).ok_or(refused)?;
        // The allocator may have used the pool meanwhile, on this thread: one cache is enough.
        // SAFETY: as above.
        if let Some(first) = unsafe { local::find(self.id).as_ref() } {
            self.give_back(cache);
            return Ok(Some(first));
        }
        local::add(cache);
        Ok(Some(cache))
    }

    /// Takes a block from another shard than the one that the thread carves. The thread carves that
    /// one from then on. Returns `None` on a thread that is ending.
    fn refill(&self, bytes: usize) -> Result<Option<Found>, AcquireError> {
        let Some(cache) = self.cache_here(bytes)? else { return Ok(None) };
        let (shard, is_fresh) = cache.refill(bytes)?;
        local::remember(self.id, shard);
        let served = if is_fresh { Served::Fresh } else { Served::Reused };
        let block = if self.settings.has_table() {
            shard.carve_in_table(bytes)
        } else {
            shard.carve(bytes, self.settings.alignment - 1)
        };
        Ok(NonNull::new(block).map(|block| Found { block, served }))
    }

    /// Takes a block in a piece for a request larger than a shard. Returns `None` where no pieces
    /// of that size are kept, on a thread that is ending, and where there is no memory of a piece's
    /// size.
    fn large(&self, bytes: usize) -> Result<Option<Found>, AcquireError> {
        let settings = &self.settings;
        let Some((class, size)) = settings.large_class(bytes) else { return Ok(None) };
        let Some(cache) = self.cache_here(bytes)? else { return Ok(None) };
        cache.anchor();
        self.depot.expect_pieces();
        if let Some(block) = cache.reuse(bytes) {
            return Ok(Some(Found { block, served: Served::Reused }));
        }
        let kept = self.kept_piece(class);
        let is_reused = kept.is_some();
        let piece = match kept {
            Some(piece) => piece,
            None => {
                self.make_room(settings.idle_bytes(size).unwrap_or(size));
                let Ok(piece) = self.fresh(size, Piece::Allocated) else { return Ok(None) };
                NonNull::from(piece)
            }
        };
        // SAFETY: of the class's size at least, free, and this thread's alone.
        let block = unsafe { cache.hand_out(piece, bytes, is_reused) };
        let served = if is_reused { Served::Reused } else { Served::Fallback };
        Ok(Some(Found { block, served }))
    }

    /// Takes a piece that is kept for requests of a class, and frees stale ones. The caller holds a
    /// handle.
    fn kept_piece(&self, class: usize) -> Option<NonNull<Shard>> {
        loop {
            let piece = self.depot.piece(class)?;
            // SAFETY: just taken, so ours alone.
            let shard = unsafe { piece.as_ref() };
            self.budget.give_back(shard.held());
            if !self.is_stale(shard) {
                return Some(piece);
            }
            // SAFETY: nothing is out of it, and it is not used again.
            unsafe { Self::come_back(piece) };
        }
    }

    /// Frees what the pool keeps, other pieces first, until a piece of `bytes` bytes can be kept
    /// when it is released: so that sizes may change. The caller holds a handle.
    fn make_room(&self, bytes: usize) {
        let mut chain = Chain::new();
        while self.budget.is_short_of(bytes) {
            let piece = self.depot.any_piece();
            if let Some(piece) = piece {
                // SAFETY: just taken, so ours alone.
                self.budget.give_back(unsafe { piece.as_ref() }.held());
            }
            let Some(shard) = piece.or_else(|| self.idle()) else { break };
            // SAFETY: likewise.
            unsafe { chain.push(shard) };
        }
        // SAFETY: nothing is out of them, and they are ours.
        unsafe { Self::free_all(chain, Piece::Discarded) };
    }
}
