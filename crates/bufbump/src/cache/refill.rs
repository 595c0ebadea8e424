//! Where a thread finds the next shard to carve, and what it gives back of those that it has.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::{Shards, ThreadCache, local};
use crate::settings::Settings;
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
        let own = |shard: &Shard| shard.set_owner(local::token(), NonNull::from(self).cast());
        let kept = self.shards.enter(|shards| {
            // SAFETY: the current shard is valid (N1).
            if let Some(current) = unsafe { shards.current.as_ref() } {
                if current.is_empty() {
                    current.restart();
                }
                if current.fits(bytes) {
                    // The list shrinks, also while the current shard always comes back.
                    shards.probe(bytes, 0, &shared.settings, over);
                    return Some(current);
                }
            }
            let kept = shards.probe(bytes, shared.settings.max_probes, &shared.settings, over);
            let kept = kept.or_else(|| shards.spares.take()).or_else(|| {
                let idle = shared.depot.idle()?;
                // SAFETY: what was idle is valid, and this thread's alone.
                own(unsafe { idle.as_ref() });
                Some(idle)
            });
            // SAFETY: found above: owned by this thread, so valid.
            kept.map(|kept| shards.set_current(unsafe { kept.as_ref() }))
        });
        if let Some(kept) = kept.flatten() {
            return Ok((kept, false));
        }
        let fresh = shared.fresh(bytes)?;
        own(fresh);
        self.shards.enter(|shards| shards.set_current(fresh));
        Ok((fresh, true))
    }
}

impl Shards {
    /// Makes a shard the current one. The one before goes to the list.
    fn set_current<'a>(&mut self, shard: &'a Shard) -> &'a Shard {
        // SAFETY: the current shard is valid (N1).
        if let Some(current) = unsafe { self.current.as_ref() } {
            self.list(current);
        }
        self.current = shard;
        shard
    }

    /// Takes a shard with room for `bytes` bytes, of the next `probes`, out of the list. Of those
    /// that it passes, the ones that are all back go to the spares or to `over`.
    fn probe(
        &mut self,
        bytes: usize,
        probes: usize,
        settings: &Settings,
        over: &mut Chain,
    ) -> Option<NonNull<Shard>> {
        let (mut found, mut first) = (None, None);
        for visit in 0..probes.max(LEAST_VISITS) {
            let Some(shard) = self.cursor() else { break };
            let this = NonNull::from(shard);
            if first == Some(this) {
                break;
            }
            self.cursor = shard.next();
            if shard.is_empty() {
                // SAFETY: on the list, with nothing out.
                unsafe { self.retire(this, settings.spare_shards, over) };
            } else if found.is_none() && visit < probes && shard.fits(bytes) {
                self.unlink(shard);
                found = Some(this);
            } else if first.is_none() {
                first = Some(this);
            }
        }
        found
    }
}
