//! What a thread knows: its token, and its caches, one for each pool that it has used.
//!
//! # Invariants
//!
//! - L1: `Entry::shard` is the shard that the thread carves for the pool whose number is `Entry::id`, which the thread owns.
//!   Numbers are never used twice, so an entry of a pool that is gone is never matched.
//! - L2: the caches that hang on an entry are this thread's: their state is not `FREE`, and each keeps its pool's bookkeeping.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use crate::node::Node;
use crate::shard::Shard;

/// Pools that a thread can use in turn without a look through its caches.
const ENTRIES: usize = 8;

/// One line of the table.
pub(crate) struct Entry {
    /// The pool's number; no pool has 0.
    pub(crate) id: Cell<usize>,
    pub(crate) shard: Cell<*const Shard>,
    /// The thread's caches for all pools whose numbers lead here.
    nodes: Cell<*const Node>,
}

/// What a thread knows. Its address is the thread's token.
pub(crate) struct Local {
    entries: [Entry; ENTRIES],
}

impl Local {
    const fn new() -> Self {
        Self {
            entries: [const {
                Entry { id: Cell::new(0), shard: Cell::new(ptr::null()), nodes: Cell::new(ptr::null()) }
            }; ENTRIES],
        }
    }

    /// The line for a pool.
    #[inline(always)]
    pub(crate) fn entry(&self, id: usize) -> &Entry {
        &self.entries[id % ENTRIES]
    }
}

// Without a destructor, so that it needs no registration, and is there to a thread's very end.
#[cfg(not(loom))]
std::thread_local! {
    static LOCAL: Local = const { Local::new() };
    static GUARD: Guard = const { Guard(Cell::new(ptr::null())) };
}

#[cfg(loom)]
loom::thread_local! {
    static LOCAL: &'static Local = alloc::boxed::Box::leak(alloc::boxed::Box::new(Local::new()));
    static GUARD: Guard = Guard(Cell::new(ptr::null()));
}

/// Lends the calling thread's own.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(|local| f(local))
}

/// What no other thread that lives at the same time has. Never 0.
#[inline(always)]
pub(crate) fn token() -> usize {
    with(|local| ptr::from_ref(local).addr())
}

/// Lets go of a thread's caches when it ends.
struct Guard(Cell<*const Local>);

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: null, or this thread's `LOCAL`, which has no destructor and is there until the thread is gone.
        let Some(local) = (unsafe { self.0.get().as_ref() }) else { return };
        for entry in &local.entries {
            entry.id.set(0);
            while let Some(node) = NonNull::new(entry.nodes.get().cast_mut()) {
                // SAFETY: a cache of this thread's is valid (L2).
                entry.nodes.set(unsafe { node.as_ref() }.thread_next.get());
                // SAFETY: it is taken off the list, and not used again.
                unsafe { Node::end_of_thread(node) };
            }
        }
    }
}

impl Entry {
    /// This thread's cache for the pool `id`; null when there is none. Lets go of those that it meets whose pool is gone.
    pub(crate) fn find(&self, id: usize) -> *const Node {
        let mut link = &self.nodes;
        // SAFETY: caches of this thread's are valid (L2); one whose pool is gone is, until it is let go of.
        while let Some(node) = unsafe { link.get().as_ref() } {
            if node.id() == id {
                return node;
            }
            if node.is_closed() {
                link.set(node.thread_next.get());
                // SAFETY: taken off the list, and not used again.
                unsafe { Node::let_go(NonNull::from(node)) };
            } else {
                link = &node.thread_next;
            }
        }
        ptr::null()
    }

    /// Adds a cache that has just become this thread's.
    pub(crate) fn add(&self, node: &Node) {
        node.thread_next.set(self.nodes.get());
        self.nodes.set(node);
    }

    /// Lets the next acquire find the shard at once.
    pub(crate) fn remember(&self, id: usize, shard: *const Shard) {
        self.id.set(id);
        self.shard.set(shard);
    }

    /// Takes the cache for the pool `id` off the list, if it is there.
    pub(crate) fn remove(&self, id: usize) -> *const Node {
        if self.id.get() == id {
            self.id.set(0);
        }
        let mut link = &self.nodes;
        // SAFETY: as in `find`.
        while let Some(node) = unsafe { link.get().as_ref() } {
            if node.id() == id {
                link.set(node.thread_next.get());
                return node;
            }
            link = &node.thread_next;
        }
        ptr::null()
    }
}

/// Sees to it that the caches are let go of when the thread ends. `false` when it is ending already.
///
/// Cost: on a thread's first call, the standard library registers the destructor, for which it may take a few bytes; it ends the
/// process when it gets none.
pub(crate) fn guard() -> bool {
    let local = with(ptr::from_ref);
    GUARD.try_with(|guard| guard.0.set(local)).is_ok()
}
