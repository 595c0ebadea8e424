//! Blocks on their way: into the shards and out of them, and to the page heap.

use core::ptr::NonNull;

use super::{CoreRef, Shared};
use crate::block::Block;
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
        let count = chain.len();
        if count == 0 {
            return;
        }
        // SAFETY: the references of the blocks, which are gone below; given back whatever a waker
        // does that is woken here.
        let _refs = unsafe { CoreRef::new(this, count) };
        // SAFETY: they keep it valid (P1).
        let shared = unsafe { this.as_ref() };
        let next = || {
            let block = chain.pop()?;
            if cfg!(feature = "stats") {
                // SAFETY: a block of the chain is valid.
                shared.common.freed(unsafe { block.as_ref() }.class(), why);
            }
            // SAFETY: a block of the chain was the caller's.
            Some(unsafe { Block::given(block) })
        };
        // SAFETY: made of this heap, and given up by the caller.
        unsafe { shared.heap.give_all(next) };
        if why != Why::Returned && shared.has_budget() {
            // SAFETY: kept, as above.
            unsafe { Self::notify(this, Event::Freed) };
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
