//! Where a thread finds the next shard to carve, and what it gives back of those that it has.

use core::ptr::{self, NonNull};

use bufcore::AcquireError;
use bufcore::strategy::sync::Ordering;

use super::{ThreadCache, local};
use crate::counts::Piece;
use crate::shard::{Chain, Shard};
use crate::shared::Shared;

/// Shards of the list that each search looks at, at the least, so that what others gave back is
/// found and the list shrinks.
const LEAST_VISITS: usize = 2;

impl ThreadCache {
    /// Makes a shard with room for `bytes` bytes, at most a shard's, the current one. For the
    /// cache's thread with a handle.
    ///
    /// # Errors
    ///
    /// When there is no memory; the current shard is as it was then.
    pub(crate) fn refill(&self, bytes: usize) -> Result<(&Shard, bool), AcquireError> {
        let shared = self.shared();
        // ORDER: Relaxed: a request, which is met sooner or later.
        if self.trims.get() != shared.trims.load(Ordering::Relaxed) {
            self.trim();
        }
        let before = self.current.get();
        // SAFETY: the current shard is valid (N1).
        let fits = unsafe { before.as_ref() }.is_some_and(|current| {
            if current.is_back() {
                current.restart();
            }
            current.fits(bytes)
        });
        // Where the current one will do, none is chosen: but the list shrinks, also while the
        // current shard always comes back.
        let mut over = Chain::new();
        let mut found = self.probe(bytes, if fits { 0 } else { shared.settings.max_probes }, &mut over);
        // SAFETY: taken out of the list, with nothing out.
        unsafe { Shared::all_come_back(over) };
        // Memory may have been freed or taken, here and below, and an allocator may use the pool
        // itself: so `current` is read again.
        if fits && ptr::eq(self.current.get(), before) {
            // SAFETY: as above; `fits` says that there is one.
            return Ok((unsafe { &*before }, false));
        }
        if found.is_null() {
            found = self.pop_spare();
        }
        if found.is_null()
            && let Some(idle) = shared.idle()
        {
            found = idle.as_ptr();
            // SAFETY: what was idle is valid, and this thread's alone.
            unsafe { idle.as_ref() }.own(local::token(), NonNull::from(self).cast());
        }
        let is_fresh = found.is_null();
        if is_fresh {
            let fresh = shared
                .fresh(shared.settings.shard_bytes, Piece::Allocated)
                .map_err(|_refused| AcquireError::OutOfMemory { requested: bytes })?;
            fresh.own(local::token(), NonNull::from(self).cast());
            found = fresh;
        }
        // SAFETY: the current shard is valid (N1).
        if let Some(current) = unsafe { self.current.get().as_ref() } {
            self.list(current);
        }
        // SAFETY: found above: owned by this thread.
        let shard = unsafe { &*found };
        shard.set_listed(false);
        self.current.set(shard);
        Ok((shard, is_fresh))
    }

    /// Takes a shard with room for `bytes` bytes, of the next `probes`, out of the list, or null.
    /// Of those that it passes, the ones that are all back go to the spares or to `over`.
    fn probe(&self, bytes: usize, probes: usize, over: &mut Chain) -> *const Shard {
        let (mut found, mut first) = (ptr::null::<Shard>(), ptr::null());
        for visit in 0..probes.max(LEAST_VISITS) {
            // SAFETY: a shard of the list is valid (N1).
            let Some(shard) = (unsafe { self.cursor.get().as_ref() }) else { break };
            if ptr::eq(shard, first) {
                break;
            }
            self.cursor.set(shard.next());
            if shard.is_back() {
                shard.restart();
                self.retire(shard, over);
            } else if found.is_null() && visit < probes && shard.fits(bytes) {
                self.unlink(shard);
                // At once, so that its last release, if that comes before this request is served,
                // does not look for it in the list.
                shard.set_listed(false);
                found = shard;
            } else if first.is_null() {
                first = shard;
            }
        }
        found
    }

    /// Frees what nothing is out of, except for the current shard. For the cache's thread with a
    /// handle.
    pub(crate) fn trim(&self) {
        // ORDER: Relaxed, as in `refill`.
        self.trims.set(self.shared().trims.load(Ordering::Relaxed));
        let mut free = Chain::new();
        // SAFETY: a spare is valid (N1).
        while let Some(spare) = unsafe { self.pop_spare().as_ref() } {
            // Nothing is out of it (N2), and it is this thread's.
            free.push(spare);
        }
        let mut kept: *const Shard = ptr::null();
        // SAFETY: a shard of the list is valid (N1).
        while let Some(shard) = unsafe { self.cursor.get().as_ref() } {
            if ptr::eq(shard, kept) {
                break;
            }
            self.cursor.set(shard.next());
            if shard.is_back() {
                self.unlink(shard);
                free.push(shard);
            } else if kept.is_null() {
                kept = shard;
            }
        }
        // SAFETY: nothing is out of these, and they are this thread's and in no list.
        unsafe { Shared::free_all(free) };
    }
}
