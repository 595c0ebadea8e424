//! Where a thread finds the next shard to carve, and what it gives back of those that it has.

use core::ptr::{self, NonNull};

use bufcore::AcquireError;

use super::{ThreadCache, local};
use crate::shard::{Chain, Shard};

/// Shards of the list that each search looks at, at least, so that what others gave back is
/// found and the list shrinks.
const LEAST_VISITS: usize = 2;

impl ThreadCache {
    /// Makes a shard with room for `bytes` bytes, at most a shard's, the current one, and says
    /// whether it is new. The caller is the cache's thread, and holds a handle. It carves the shard
    /// before it calls the allocator, and then frees `over`.
    ///
    /// # Errors
    ///
    /// When there is no memory; the current shard is as it was then.
    pub(crate) fn refill(&self, bytes: usize, over: &mut Chain) -> Result<(&Shard, bool), AcquireError> {
        let shared = self.shared();
        let before = self.current.get();
        // SAFETY: the current shard is valid (N1).
        let fits = unsafe { before.as_ref() }.is_some_and(|current| {
            if current.is_empty() {
                current.restart();
            }
            current.fits(bytes)
        });
        // Where the current one will do, none is chosen: but the list shrinks, also while the
        // current shard always comes back.
        let mut found = self.probe(bytes, if fits { 0 } else { shared.settings.max_probes }, over);
        if fits {
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
            unsafe { idle.as_ref() }.set_owner(local::token(), NonNull::from(self).cast());
        }
        let is_fresh = found.is_null();
        if is_fresh {
            let fresh = shared
                .fresh(shared.settings.shard_bytes)
                .map_err(|_refused| AcquireError::OutOfMemory { requested: bytes })?;
            fresh.set_owner(local::token(), NonNull::from(self).cast());
            found = fresh;
        }
        // Read again, as the allocator was called.
        // SAFETY: the current shard is valid (N1).
        if let Some(current) = unsafe { self.current.get().as_ref() } {
            self.list(current);
        }
        // SAFETY: found above: owned by this thread.
        let shard = unsafe { &*found };
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
            if shard.is_detached() {
                self.drop_detached(NonNull::from(shard));
            } else if shard.is_empty() {
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
}
