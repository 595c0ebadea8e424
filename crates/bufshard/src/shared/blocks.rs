//! Blocks on their way: into the shards and out of them, and to the allocator.

use core::ptr::NonNull;

use bufcore::Region;

use super::{CoreRef, Shared};
use crate::block::{Block, LEAST_RETURNED};
use crate::chain::Chain;
use crate::counts::Why;
use crate::wait_queue::Event;

impl Shared {
    /// Frees a chain of blocks, and the references to the pool's bookkeeping that they are. Idle
    /// ones are counted.
    ///
    /// # Safety
    ///
    /// The chain is the caller's, of this pool.
    pub(crate) unsafe fn free_chain(this: NonNull<Self>, mut chain: Chain, why: Why) {
        let (mut count, mut bytes, mut least) = (0, 0, None);
        let layout_of = |class, bytes| {
            // SAFETY: the references of the blocks keep it valid; they are given back below.
            unsafe { this.as_ref() }.settings.layout_of(class, bytes)
        };
        while let Some(block) = chain.pop() {
            if cfg!(feature = "stats") && why != Why::Uncounted {
                // SAFETY: a block of the chain is valid.
                let class = unsafe { block.as_ref() }.class();
                // SAFETY: the references of the blocks keep it valid; they are given back below.
                unsafe { this.as_ref() }.common.freed(class, why);
            }
            // SAFETY: the references of the blocks keep it valid; they are given back below.
            let least = *least.get_or_insert_with(|| unsafe { this.as_ref() }.least_returned(why));
            // SAFETY: a block of the chain was the caller's, and its shape is of these settings.
            bytes += unsafe { Block::free(block, layout_of, least) };
            count += 1;
        }
        if count == 0 {
            return;
        }
        // SAFETY: the references of blocks that are gone; given back whatever a waker does that is
        // woken here.
        let _refs = unsafe { CoreRef::new(this, count) };
        // SAFETY: they keep it valid (P1).
        unsafe { Self::unreserve(this, bytes) };
    }

    /// Returns the least number of bytes of freed memory that is passed on to the system.
    ///
    /// Idle memory always is. What else is freed may be needed again at once, so the allocator gets
    /// it, as long as nobody looks after the memory.
    fn least_returned(&self, why: Why) -> usize {
        match why {
            Why::Idle => LEAST_RETURNED,
            _ if self.is_watched() => Region::LARGE_BYTES,
            _ => usize::MAX,
        }
    }

    /// Puts the blocks that `next` gives into the shards, and returns those that they have no room
    /// for. To be followed by `after_put`, when nothing is locked or entered any more.
    pub(crate) fn put(
        &self,
        home: usize,
        class: usize,
        next: impl FnMut() -> Option<NonNull<Block>>,
    ) -> Chain {
        self.depot.put(home, class, self.settings.shard_limit(class), next)
    }

    /// Takes a reference to the bookkeeping for `after_put`, where somebody may ever wait. The
    /// caller keeps the bookkeeping.
    pub(crate) fn keep_for_waiters(&self) -> Option<CoreRef> {
        // SAFETY: the caller keeps the bookkeeping.
        self.has_budget().then(|| unsafe { CoreRef::add(NonNull::from(self)) })
    }

    /// Frees what the shards had no room for, and tells those who wait, who may have looked into
    /// the shards already: where that may be, the caller brings what keeps the bookkeeping
    /// meanwhile, whatever wakers and the allocator do.
    ///
    /// # Safety
    ///
    /// The rest is the caller's, of this pool. The bookkeeping need not be there if there is
    /// neither a rest nor `kept`, which is of it.
    #[cold]
    pub(crate) unsafe fn after_put(this: NonNull<Self>, rest: Chain, kept: Option<CoreRef>) {
        // SAFETY: the caller's promise.
        unsafe { Self::free_chain(this, rest, Why::NoRoom) };
        if let Some(_kept) = kept {
            // SAFETY: kept until the end of this block.
            unsafe { Self::notify(this, Event::Put) };
        }
    }

    /// Puts a chain of a class into the shards, and frees what they have no room for.
    ///
    /// # Safety
    ///
    /// The caller keeps the bookkeeping; the chain is the caller's, of this pool.
    pub(crate) unsafe fn store(this: NonNull<Self>, home: usize, class: usize, mut chain: Chain) {
        if !chain.is_empty() {
            // SAFETY: the caller's promise.
            let shared = unsafe { this.as_ref() };
            let rest = shared.put(home, class, || chain.pop());
            // SAFETY: given back by the shards; what is kept is of this pool.
            unsafe { Self::after_put(this, rest, shared.keep_for_waiters()) };
        }
    }
}
