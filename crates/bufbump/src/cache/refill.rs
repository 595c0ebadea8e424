//! Where a thread finds the next shard to carve, and what it gives back of those that it has.

use core::ptr::{self, NonNull};

use bufcore::AcquireError;
use bufkit::sync::Ordering;

use super::{ThreadCache, local};
use crate::counts::Piece;
use crate::shard::{Chain, Shard};
use crate::shared::Shared;

/// Shards of the list that each search looks at, at least, so that what others gave back is
/// found and the list shrinks.
const LEAST_VISITS: usize = 2;

impl ThreadCache {
    /// Makes a shard with room for `bytes` bytes, at most a shard's, the current one. The caller is
    /// the cache's thread, and holds a handle.
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
        if found.is_null()
            && let Some(spare) = self.spares.take()
        {
            found = spare.as_ptr();
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
        match unsafe { self.current.get().as_ref() } {
            Some(current) if current.size() > 0 => self.list(current),
            Some(bare) => self.drop_bare(NonNull::from(bare)),
            None => {}
        }
        // SAFETY: found above: owned by this thread.
        let shard = unsafe { &*found };
        self.current.set(shard);
        Ok((shard, is_fresh))
    }

    /// Makes a header without memory the current shard, if there is none: by it the next request
    /// finds the cache at once. The caller is the cache's thread, and holds a handle. The allocator
    /// may use the pool.
    pub(crate) fn anchor(&self) {
        if !self.current.get().is_null() {
            return;
        }
        let Some(header) = self.shared().bare() else { return };
        // SAFETY: this thread's alone.
        let shard = unsafe { header.as_ref() };
        shard.own(local::token(), NonNull::from(self).cast());
        // The allocator may have come here meanwhile.
        if self.current.get().is_null() {
            self.current.set(shard);
            local::remember(self.shared().id, shard);
        } else {
            self.drop_bare(header);
        }
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
            if shard.is_hollow() {
                self.drop_hollow(NonNull::from(shard));
            } else if shard.is_back() {
                // Otherwise another thread looks at it, and may take it.
                if shard.unlist() {
                    shard.restart();
                    // SAFETY: with nothing out, and it starts at its first byte.
                    unsafe { self.retire(NonNull::from(shard), over) };
                }
            } else if found.is_null() && visit < probes && shard.fits(bytes) && shard.unlist() {
                // Its last release, if that comes before this request is served, does not look for
                // it in the list.
                self.unlink(shard);
                found = shard;
            } else if first.is_null() {
                first = shard;
            }
        }
        found
    }

    /// Frees what nothing is out of, except for the current shard. The caller is the cache's
    /// thread, and holds a handle.
    pub(crate) fn trim(&self) {
        // ORDER: Relaxed, as in `refill`.
        self.trims.set(self.shared().trims.load(Ordering::Relaxed));
        let mut free = Chain::new();
        while let Some(spare) = self.spares.take() {
            // SAFETY: nothing is out of it (N2), and it is this thread's.
            unsafe { free.push(spare) };
        }
        let mut kept: *const Shard = ptr::null();
        // SAFETY: a shard of the list is valid (N1).
        while let Some(shard) = unsafe { self.cursor.get().as_ref() } {
            if ptr::eq(shard, kept) {
                break;
            }
            self.cursor.set(shard.next());
            if shard.is_hollow() {
                self.drop_hollow(NonNull::from(shard));
            } else if shard.is_back() && shard.unlist() {
                self.unlink(shard);
                // SAFETY: this thread's, and off the list.
                unsafe { free.push(NonNull::from(shard)) };
            } else if kept.is_null() {
                kept = shard;
            }
        }
        // SAFETY: nothing is out of these, and they are this thread's and in no list.
        unsafe { Shared::free_all(free, Piece::Trimmed) };
    }
}
