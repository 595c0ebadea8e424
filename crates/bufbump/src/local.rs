//! What a thread knows: its token, the shards that it carves, and its caches, one for each pool that it has used.
//!
//! # Invariants
//!
//! - L1: `Entry::shard` is the shard that the thread carves for the pool whose number is `Entry::id`, and the thread owns it.
//!   Numbers are never used twice, so an entry of a pool that is gone is never matched.
//! - L2: the caches on a thread's lists are the thread's: their state is not `FREE`, and each keeps its pool's bookkeeping.
//! - L3: a token is never used twice.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufcore::strategy::sync::{AtomicUsize, Ordering};

use crate::node::Node;
use crate::shard::Shard;

/// Pools that a thread can use in turn without a look through its caches.
const ENTRIES: usize = 8;

/// The token of a thread that has no caches yet, or no variables any more. It owns nothing.
const NO_TOKEN: usize = 0;
/// The first that a thread can have; what lies between is for `shard`.
const FIRST_TOKEN: usize = 2;
/// The last, so that the count does not wrap.
const LAST_TOKEN: usize = usize::MAX / 2;

/// One line of the table.
pub(crate) struct Entry {
    /// The pool's number; no pool has 0.
    id: Cell<usize>,
    shard: Cell<*const Shard>,
}

/// What the fast paths need. Without a destructor, so that it is there to a thread's very end, where the system allows that.
struct Local {
    token: Cell<usize>,
    entries: [Entry; ENTRIES],
}

/// A thread's caches, in lists by the lines of the table that their pools use.
struct Caches([Cell<*const Node>; ENTRIES]);

impl Local {
    const fn new() -> Self {
        let entries = [const { Entry { id: Cell::new(0), shard: Cell::new(ptr::null()) } }; ENTRIES];
        Self { token: Cell::new(NO_TOKEN), entries }
    }
}

impl Caches {
    const fn new() -> Self {
        Self([const { Cell::new(ptr::null()) }; ENTRIES])
    }
}

#[cfg(not(loom))]
std::thread_local! {
    static LOCAL: Local = const { Local::new() };
    static CACHES: Caches = const { Caches::new() };
}
#[cfg(not(loom))]
static TOKENS: AtomicUsize = AtomicUsize::new(FIRST_TOKEN);

#[cfg(loom)]
loom::thread_local! {
    static LOCAL: Local = Local::new();
    static CACHES: Caches = Caches::new();
}
#[cfg(loom)]
loom::lazy_static! {
    static ref TOKENS: AtomicUsize = AtomicUsize::new(FIRST_TOKEN);
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.end();
    }
}

impl Caches {
    /// The end of the thread.
    fn end(&self) {
        // No acquire finds a shard from here on. Where the table is gone already, none looks.
        let _ = LOCAL.try_with(|local| local.entries.iter().for_each(|entry| entry.id.set(0)));
        for list in &self.0 {
            while let Some(node) = NonNull::new(list.get().cast_mut()) {
                // SAFETY: a cache of this thread's is valid (L2).
                list.set(unsafe { node.as_ref() }.thread_next.get());
                // SAFETY: it is taken off the list, and not used again.
                unsafe { Node::end_of_thread(node) };
            }
        }
    }
}

/// What the end of the calling thread does, earlier: the model checker's `join` does not wait for the destructors of variables.
#[cfg(all(test, loom))]
pub(crate) fn end_of_thread() {
    CACHES.with(Caches::end);
}

/// The calling thread's token.
#[inline(always)]
pub(crate) fn token() -> usize {
    LOCAL.try_with(|local| local.token.get()).unwrap_or(NO_TOKEN)
}

/// The shard that the calling thread carves for the pool `id`, if it is to be found at once; else null.
#[inline(always)]
pub(crate) fn shard(id: usize) -> *const Shard {
    let find = |local: &Local| {
        let entry = &local.entries[id % ENTRIES];
        if entry.id.get() == id { entry.shard.get() } else { ptr::null() }
    };
    LOCAL.try_with(find).unwrap_or(ptr::null())
}

/// Lets the next acquire find the shard at once (L1).
pub(crate) fn remember(id: usize, shard: *const Shard) {
    let _ = LOCAL.try_with(|local| {
        let entry = &local.entries[id % ENTRIES];
        entry.shard.set(shard);
        entry.id.set(id);
    });
}

/// Gives the calling thread a token, if it has none. `None` when the thread is ending, and keeps no caches any more.
///
/// Cost: on a thread's first call, the standard library registers a destructor, for which it may take a few bytes from the system; it
/// ends the process when it gets none.
pub(crate) fn register() -> Option<usize> {
    CACHES.try_with(|_| ()).ok()?;
    let set = |local: &Local| {
        if local.token.get() == NO_TOKEN {
            // ORDER: Relaxed: the numbers only have to differ.
            let token = TOKENS.fetch_add(1, Ordering::Relaxed);
            if token > LAST_TOKEN {
                // ORDER: Relaxed, as above.
                TOKENS.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
            local.token.set(token);
        }
        Some(local.token.get())
    };
    LOCAL.try_with(set).ok()?
}

/// The calling thread's list for the pool `id`; `None` for a thread that has no caches.
fn with_list<R>(id: usize, f: impl FnOnce(&Cell<*const Node>) -> R) -> Option<R> {
    // A thread without a token has used no pool; asking for its lists would register their destructor.
    if token() == NO_TOKEN {
        return None;
    }
    CACHES.try_with(|caches| f(&caches.0[id % ENTRIES])).ok()
}

/// The calling thread's cache for the pool `id`, which the caller has a handle of; null when there is none. Lets go of those that it
/// meets whose pool is gone.
pub(crate) fn find(id: usize) -> *const Node {
    let find = |list: &Cell<*const Node>| {
        let mut link = list;
        // SAFETY: caches of this thread's are valid (L2), until they are let go of.
        while let Some(node) = unsafe { link.get().as_ref() } {
            if node.id() == id {
                return ptr::from_ref(node);
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
    };
    with_list(id, find).unwrap_or(ptr::null())
}

/// Adds a cache that has just become this thread's. The thread has a token.
pub(crate) fn add(node: &Node) {
    let added = with_list(node.id(), |list| {
        node.thread_next.set(list.get());
        list.set(node);
    });
    debug_assert!(added.is_some(), "a thread with a token has lists until it ends");
}

/// Takes the cache for the pool `id` off the calling thread's lists, if it is there; else null.
pub(crate) fn remove(id: usize) -> *const Node {
    let remove = |list: &Cell<*const Node>| {
        let mut link = list;
        // SAFETY: caches of this thread's are valid (L2).
        while let Some(node) = unsafe { link.get().as_ref() } {
            if node.id() == id {
                link.set(node.thread_next.get());
                return ptr::from_ref(node);
            }
            link = &node.thread_next;
        }
        ptr::null()
    };
    with_list(id, remove).unwrap_or(ptr::null())
}
