//! A stack of shards that nobody owns, for all threads: Treiber's (1986), whose pop takes everything, so that no address can come
//! back between its look and its exchange.

use core::ptr;

use bufcore::strategy::sync::{AtomicPtr, Ordering, RELEASE};

use crate::shard::Shard;

/// The stack, through the shards' own links.
pub(crate) struct Stack {
    /// The top, null, or `closed()`.
    head: AtomicPtr<Shard>,
}

/// What `head` is when nothing may be pushed any more.
fn closed() -> *mut Shard {
    ptr::without_provenance_mut(1)
}

impl Stack {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts the chain `first ..= last` on top; `false` when the stack is closed, and then the chain is still the caller's.
    ///
    /// # Safety
    ///
    /// The chain is valid and the caller's alone.
    pub(crate) unsafe fn push(&self, first: *const Shard, last: *const Shard) -> bool {
        // ORDER: Relaxed: compared only; the exchange publishes.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == closed() {
                return false;
            }
            // SAFETY: the chain is the caller's until the exchange succeeds.
            unsafe { &*last }.set_next(head);
            // ORDER: Release pairs with the Acquire in `take`: the shards' contents are seen. A failure publishes nothing.
            match self.head.compare_exchange_weak(head, first.cast_mut(), RELEASE, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
    }

    /// Takes one shard, or null. For those who hold the pool, so that it cannot be closed meanwhile.
    pub(crate) fn pop(&self) -> *const Shard {
        let first = self.take();
        if first.is_null() {
            return first;
        }
        // SAFETY: what was taken is ours.
        let rest = unsafe { &*first }.next();
        if rest.is_null() {
            return first;
        }
        // ORDER: Release pairs with the Acquire in `take`, as in `push`; a failure publishes nothing.
        let put_back =
            self.head.compare_exchange(ptr::null_mut(), rest.cast_mut(), RELEASE, Ordering::Relaxed);
        if put_back.is_err() {
            let (mut last, mut at) = (rest, rest);
            // SAFETY: still ours, to its end.
            while let Some(shard) = unsafe { at.as_ref() } {
                (last, at) = (shard, shard.next());
            }
            // SAFETY: the chain is ours. It is not closed: the caller holds the pool.
            let pushed = unsafe { self.push(rest, last) };
            debug_assert!(pushed, "closed while the pool was held");
        }
        first
    }

    /// Takes all of it: the first, which leads to the others.
    pub(crate) fn take(&self) -> *const Shard {
        // ORDER: Relaxed: only whether there is anything.
        if self.head.load(Ordering::Relaxed).is_null() {
            return ptr::null();
        }
        // ORDER: Acquire pairs with the Release in `push`.
        self.head.swap(ptr::null_mut(), Ordering::Acquire)
    }

    /// Takes all of it, and lets nothing in any more.
    pub(crate) fn close(&self) -> *const Shard {
        // ORDER: Acquire pairs with the Release in `push`; nothing is published.
        self.head.swap(closed(), Ordering::Acquire)
    }
}
