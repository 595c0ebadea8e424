//! What a thread knows of the pools that it uses; see [`crate::strategy::threads`].
//!
//! # Invariants
//!
//! - L1: `Entry::value` was remembered by this thread for the pool whose number is `Entry::id`, whose cache is on the thread's lists.
//!   Numbers are never used twice, and an entry is cleared when the cache leaves the lists: so an entry that is matched is valid.
//! - L2: the caches on a thread's lists are the thread's, and each is valid until it is taken off.
//! - L3: a token is never used twice.

use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

use crate::sync::{AtomicUsize, Ordering};

/// Pools that a thread can use in turn without a look through its caches.
const ENTRIES: usize = 8;
/// The token of a thread that has no caches yet, or no variables any more. It owns nothing.
pub const NO_TOKEN: usize = 0;
/// The first that a thread can have; what lies between is for strategies.
const FIRST_TOKEN: usize = 2;
/// The last token, and the last number of a pool, so that the counts do not wrap.
const LAST: usize = usize::MAX / 2;

/// The head of a cache: what a thread has for one pool. First field of a `repr(C)` cache.
pub struct Cache {
    /// The pool's number.
    id: usize,
    /// The next on the thread's list; the thread's own.
    next: Cell<*const Cache>,
    methods: &'static Methods,
}

/// What the lists do with a cache that they know nothing else of.
///
/// All are called with the address of a cache on the calling thread's lists. They may use the pool, and do not panic.
#[derive(Debug)]
pub struct Methods {
    /// Whether the cache's pool is gone.
    pub is_closed: unsafe fn(NonNull<Cache>) -> bool,
    /// The thread ends. The cache is off the list, and its memory may go.
    pub end_of_thread: unsafe fn(NonNull<Cache>),
    /// The pool is gone. The cache is off the list, and its memory may go.
    pub let_go: unsafe fn(NonNull<Cache>),
}

impl Cache {
    /// A head for a cache of the pool `id`, which is on no list.
    #[must_use]
    pub fn new(id: usize, methods: &'static Methods) -> Self {
        Self { id, next: Cell::new(ptr::null()), methods }
    }

    /// The pool's number.
    #[inline]
    #[must_use]
    pub fn id(&self) -> usize {
        self.id
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("id", &self.id).finish_non_exhaustive()
    }
}

/// One line of the table.
struct Entry {
    /// The pool's number; no pool has 0.
    id: Cell<usize>,
    value: Cell<NonNull<()>>,
}

/// What the fast paths need. Without a destructor, so that it is there to a thread's very end, where the system allows that.
struct Local {
    token: Cell<usize>,
    entries: [Entry; ENTRIES],
}

/// A thread's caches, in lists by the lines of the table that their pools use.
struct Caches([Cell<*const Cache>; ENTRIES]);

impl Local {
    const fn new() -> Self {
        let entries = [const { Entry { id: Cell::new(0), value: Cell::new(NonNull::dangling()) } }; ENTRIES];
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
#[cfg(not(loom))]
static IDS: AtomicUsize = AtomicUsize::new(1);

#[cfg(loom)]
loom::thread_local! {
    static LOCAL: Local = Local::new();
    static CACHES: Caches = Caches::new();
}
#[cfg(loom)]
loom::lazy_static! {
    static ref TOKENS: AtomicUsize = AtomicUsize::new(FIRST_TOKEN);
    static ref IDS: AtomicUsize = AtomicUsize::new(1);
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.end();
    }
}

impl Caches {
    /// The end of the thread.
    fn end(&self) {
        // No fast path finds a cache from here on. Where the table is gone already, none looks.
        let _ = LOCAL.try_with(|local| local.entries.iter().for_each(|entry| entry.id.set(0)));
        for list in &self.0 {
            while let Some(cache) = NonNull::new(list.get().cast_mut()) {
                // SAFETY: a cache of this thread's is valid (L2).
                let head = unsafe { cache.as_ref() };
                let methods = head.methods;
                list.set(head.next.get());
                // SAFETY: it is taken off the list, and not used again.
                unsafe { (methods.end_of_thread)(cache) };
            }
        }
    }
}

/// What the end of the calling thread does, earlier: the model checker's `join` does not wait for the destructors of variables.
#[cfg(loom)]
pub fn end_of_thread() {
    CACHES.with(Caches::end);
}

/// The next of numbers that only have to differ, up to the last.
fn next_of(numbers: &AtomicUsize) -> Option<usize> {
    // ORDER: Relaxed: the numbers only have to differ.
    let number = numbers.fetch_add(1, Ordering::Relaxed);
    if number > LAST {
        // ORDER: Relaxed, as above.
        numbers.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    Some(number)
}

/// A number for a new pool, which no other pool ever had or has; `None` after some thousand million million.
///
/// # Errors
///
/// The number that was one too many, and the last one.
pub fn new_id() -> Result<usize, crate::ConfigError> {
    next_of(&IDS).ok_or(crate::ConfigError::TooLarge { setting: "pools", requested: LAST + 1, limit: LAST })
}

/// The calling thread's token, or [`NO_TOKEN`].
#[inline(always)]
#[must_use]
pub fn token() -> usize {
    LOCAL.try_with(|local| local.token.get()).unwrap_or(NO_TOKEN)
}

/// What the calling thread remembered for the pool `id`, if it is to be found at once.
#[inline(always)]
#[must_use]
pub fn recall(id: usize) -> Option<NonNull<()>> {
    let find = |local: &Local| {
        let entry = &local.entries[id % ENTRIES];
        (entry.id.get() == id).then(|| entry.value.get())
    };
    LOCAL.try_with(find).ok().flatten()
}

/// Lets the next [`recall`] find `value` at once, until the cache for the pool is off the thread's lists. For threads that have one.
pub fn remember(id: usize, value: NonNull<()>) {
    let _ = LOCAL.try_with(|local| {
        let entry = &local.entries[id % ENTRIES];
        entry.value.set(value);
        entry.id.set(id);
    });
}

/// Clears the entry of the pool `id` (L1).
fn forget(id: usize) {
    let _ = LOCAL.try_with(|local| {
        let entry = &local.entries[id % ENTRIES];
        if entry.id.get() == id {
            entry.id.set(0);
        }
    });
}

/// Gives the calling thread a token, if it has none. `None` when the thread is ending, and keeps no caches any more.
///
/// Cost: on a thread's first call, the standard library registers a destructor, for which it may take a few bytes from the system; it
/// ends the process when it gets none.
#[must_use]
pub fn register() -> Option<usize> {
    CACHES.try_with(|_| ()).ok()?;
    let set = |local: &Local| {
        if local.token.get() == NO_TOKEN {
            local.token.set(next_of(&TOKENS)?);
        }
        Some(local.token.get())
    };
    LOCAL.try_with(set).ok()?
}

/// The calling thread's list for the pool `id`; `None` for a thread that has no caches.
fn with_list<R>(id: usize, f: impl FnOnce(&Cell<*const Cache>) -> R) -> Option<R> {
    // A thread without a token has used no pool; asking for its lists would register their destructor.
    if token() == NO_TOKEN {
        return None;
    }
    CACHES.try_with(|caches| f(&caches.0[id % ENTRIES])).ok()
}

/// The calling thread's cache for the pool `id`; null when there is none. Lets go of those that it meets whose pool is gone, but for
/// that one.
#[must_use]
pub fn find(id: usize) -> *const Cache {
    let find = |list: &Cell<*const Cache>| {
        let mut link = list;
        // SAFETY: caches of this thread's are valid (L2), until they are let go of.
        while let Some(cache) = unsafe { link.get().as_ref() } {
            if cache.id == id {
                return ptr::from_ref(cache);
            }
            let (methods, at) = (cache.methods, NonNull::from(cache));
            // SAFETY: on this thread's list.
            if unsafe { (methods.is_closed)(at) } {
                link.set(cache.next.get());
                forget(cache.id);
                // SAFETY: taken off the list, and not used again.
                unsafe { (methods.let_go)(at) };
            } else {
                link = &cache.next;
            }
        }
        ptr::null()
    };
    with_list(id, find).unwrap_or(ptr::null())
}

/// Adds a cache that has just become this thread's. The thread has a token.
///
/// # Safety
///
/// The cache is on no list, and valid until one of its [`Methods`] has been called with the note that it is off the list, or until
/// [`remove`] has returned it.
pub unsafe fn add(cache: NonNull<Cache>) {
    // SAFETY: the caller's promise.
    let head = unsafe { cache.as_ref() };
    let added = with_list(head.id, |list| {
        head.next.set(list.get());
        list.set(cache.as_ptr());
    });
    debug_assert!(added.is_some(), "a thread with a token has lists until it ends");
}

/// Takes the cache for the pool `id` off the calling thread's lists, if it is there; else null.
#[must_use]
pub fn remove(id: usize) -> *const Cache {
    let remove = |list: &Cell<*const Cache>| {
        let mut link = list;
        // SAFETY: caches of this thread's are valid (L2).
        while let Some(cache) = unsafe { link.get().as_ref() } {
            if cache.id == id {
                link.set(cache.next.get());
                forget(id);
                return ptr::from_ref(cache);
            }
            link = &cache.next;
        }
        ptr::null()
    };
    with_list(id, remove).unwrap_or(ptr::null())
}
