//! How a thread finds its cache for a pool, for strategies with a cache for each thread.
//!
//! A cache is the strategy's own type, with a [`Cache`] as its header. A thread has one for each
//! pool that it uses, on a list of this module. Fast paths use a table without a destructor: a
//! look-up takes a few instructions. When the thread exits, or the pool is found to be dropped, the
//! list calls one of the cache's [`Methods`].
//!
//! Each look-up also checks some of the thread's other caches, and more if the thread has none for
//! this pool yet. A thread that keeps using new pools therefore holds few caches of dropped pools:
//! about as many as it ever had at once. An idle thread keeps its caches until it uses a pool or
//! exits.
//!
//! # Invariants
//!
//! - L1: `Entry::value` was stored by this thread for the pool whose number is `Entry::id`, whose
//!   cache is on the thread's list. Numbers are never used twice, and an entry is cleared when the
//!   cache leaves the list. A matching entry is therefore the value that the strategy stored for
//!   this pool (`set_fast`).
//! - L2: the caches on a thread's list are the thread's, and each is valid until it is taken off.
//! - L3: a token is never used twice.
//! - L4: user code (wakers that are dropped with a pool, the allocator) is called while nothing of
//!   a list is borrowed or inconsistent. It is called for caches that are already off the list. It
//!   may therefore use these functions itself.

mod caches;

use core::cell::Cell;
use core::ptr::{self, NonNull};

pub use self::caches::Cache;
use self::caches::{Caches, Chain};
use crate::sync::{AtomicUsize, Ordering};
use bufcore::author::catch_user_panic;

/// Pools that a thread can use in turn without a look through its caches.
const ENTRIES: usize = 8;
/// The token of a thread that has no caches yet, or whose thread-locals were destroyed. It owns
/// nothing.
pub const NO_TOKEN: usize = 0;
/// The first that a thread can have; what lies between is for strategies.
const FIRST_TOKEN: usize = 2;
/// The last token, and the last number of a pool, so that the counts do not wrap.
const LAST: usize = usize::MAX / 2;
/// Caches that a search looks at beside the one that it is for, whether their pool is gone: when it
/// finds that one, and when not, which is when a cache is going to be added. More than one, so that
/// the list does not grow for good.
const LOOKS: (usize, usize) = (1, 2);

/// The functions that the list calls on a cache, whose type it does not know. [`Cache`] has an
/// example of them.
///
/// Each gets the address of a cache that is or was on the calling thread's list, and may use the
/// pool.
///
/// ```
/// use bufkit::thread_cache::Methods;
///
/// /// Those of caches that are never freed, and whose pools never end.
/// static STATIC: Methods =
///     Methods { is_closed: |_| false, end_of_thread: |_| (), on_pool_closed: |_| () };
/// # let _ = &STATIC;
/// ```
#[derive(Debug)]
pub struct Methods {
    /// Returns whether the cache's pool was dropped. It calls no user code, nor any function of
    /// this module.
    pub is_closed: unsafe fn(NonNull<Cache>) -> bool,
    /// Called when the thread exits. The cache is off the list, and its memory may be freed.
    ///
    /// A panic of user code in it, such as a waker's drop, is caught.
    pub end_of_thread: unsafe fn(NonNull<Cache>),
    /// Called when the pool was dropped. The cache is off the list, and its memory may be freed. A
    /// panic is caught, as above.
    pub on_pool_closed: unsafe fn(NonNull<Cache>),
}

/// One line of the table.
struct Entry {
    /// The pool's number; no pool has 0.
    id: Cell<usize>,
    value: Cell<NonNull<()>>,
}

/// The table for the fast paths. It has no destructor, so it lasts to a thread's very end, where
/// the system allows that.
struct Local {
    token: Cell<usize>,
    /// The one that was used last, in a place that depends on nothing: a release finds the pool's
    /// number in memory, and what it stores would come late if its address did.
    last: Entry,
    entries: [Entry; ENTRIES],
}

impl Entry {
    const fn new() -> Self {
        Self { id: Cell::new(0), value: Cell::new(NonNull::dangling()) }
    }

    fn set(&self, id: usize, value: NonNull<()>) {
        self.value.set(value);
        self.id.set(id);
    }
}

impl Local {
    const fn new() -> Self {
        Self { token: Cell::new(NO_TOKEN), last: Entry::new(), entries: [const { Entry::new() }; ENTRIES] }
    }

    /// Returns the places of the pool `id`.
    fn of(&self, id: usize) -> [&Entry; 2] {
        [&self.last, &self.entries[id % ENTRIES]]
    }

    /// Makes the entry of another pool than the last one the last, if there is one.
    #[cold]
    #[inline(never)]
    fn look_up(&self, id: usize) -> bool {
        let [last, entry] = self.of(id);
        let is_found = entry.id.get() == id;
        if is_found {
            last.set(id, entry.value.get());
        }
        is_found
    }
}

#[cfg(not(any(loom, shuttle)))]
std::thread_local! {
    static LOCAL: Local = const { Local::new() };
    static CACHES: Caches = const { Caches::new() };
}
#[cfg(not(any(loom, shuttle)))]
static TOKENS: AtomicUsize = AtomicUsize::new(FIRST_TOKEN);
#[cfg(not(any(loom, shuttle)))]
static IDS: AtomicUsize = AtomicUsize::new(1);

#[cfg(any(loom, shuttle))]
crate::sync::checker::thread_local! {
    static LOCAL: Local = Local::new();
    static CACHES: Caches = Caches::new();
}
#[cfg(any(loom, shuttle))]
crate::sync::checker::lazy_static! {
    static ref TOKENS: AtomicUsize = AtomicUsize::new(FIRST_TOKEN);
    static ref IDS: AtomicUsize = AtomicUsize::new(1);
}

impl Drop for Caches {
    fn drop(&mut self) {
        // In a forked child, what another thread of the parent had locked stays locked: the child
        // leaves all caches as they are, and ends.
        if self.are_of(process()) {
            end(self);
        }
    }
}

/// Returns the number of the process; on systems where no process forks, any.
///
/// ```
/// assert_eq!(bufkit::thread_cache::process(), bufkit::thread_cache::process());
/// ```
#[must_use]
pub fn process() -> u32 {
    if cfg!(unix) { std::process::id() } else { 0 }
}

/// Ends the thread's use of its caches.
fn end(caches: &Caches) {
    // No fast path finds a cache from here on. Where the table is gone already, none looks.
    let _ =
        LOCAL.try_with(|local| local.entries.iter().chain([&local.last]).for_each(|entry| entry.id.set(0)));
    let mut chain = caches.take_all();
    while let Some(cache) = chain.pop() {
        // SAFETY: a cache of this thread's is valid (L2) until its method is called.
        let methods = unsafe { cache.as_ref() }.methods();
        // SAFETY: it is off the list, and not used again.
        unsafe { call(methods.end_of_thread, cache) };
    }
}

/// Lets go of caches of pools that are gone.
#[cold]
fn on_pool_closed(mut closed: Chain) {
    while let Some(cache) = closed.pop() {
        // SAFETY: a cache of this thread's is valid (L2) until its method is called.
        let methods = unsafe { cache.as_ref() }.methods();
        // SAFETY: it is off the list, and not used again.
        unsafe { call(methods.on_pool_closed, cache) };
    }
}

/// Calls a method in which code of the user's may run. If that panics, the panic was reported by
/// its hook, and whoever met the cache continues: it is a thread's end, or somebody who uses
/// another pool.
///
/// # Safety
///
/// As the method says.
unsafe fn call(method: unsafe fn(NonNull<Cache>), cache: NonNull<Cache>) {
    // SAFETY: the caller's promise.
    let _ = catch_user_panic(|| unsafe { method(cache) });
}

/// Does what the end of the calling thread does, earlier: the model checker's `join` does not wait
/// for the destructors of variables.
#[cfg(any(loom, shuttle))]
pub fn end_of_thread() {
    CACHES.with(end);
}

/// Returns the next of numbers that only have to differ, up to the last.
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

/// Returns a number for a new pool, which is never used for another pool.
///
/// # Errors
///
/// Returns [`ConfigError::TooLarge`](bufcore::ConfigError::TooLarge) after about 10^15 numbers.
///
/// ```
/// use bufkit::thread_cache;
///
/// assert_ne!(thread_cache::new_id()?, thread_cache::new_id()?);
/// # Ok::<(), bufcore::Error>(())
/// ```
pub fn new_id() -> Result<usize, bufcore::ConfigError> {
    next_of(&IDS).ok_or(bufcore::ConfigError::TooLarge { setting: "pools", requested: LAST + 1, limit: LAST })
}

/// Returns the calling thread's token, or [`NO_TOKEN`].
#[inline(always)]
#[must_use]
pub fn token() -> usize {
    LOCAL.try_with(|local| local.token.get()).unwrap_or(NO_TOKEN)
}

/// Returns the value that the calling thread stored for the pool `id`, if a fast look-up finds it.
/// [`set_fast`] has an example.
///
/// Cost: as [`get_last`] for the pool of the last look-up; a function call for another.
#[inline(always)]
#[must_use]
pub fn get_fast(id: usize) -> Option<NonNull<()>> {
    let find =
        |local: &Local| (local.last.id.get() == id || local.look_up(id)).then(|| local.last.value.get());
    LOCAL.try_with(find).ok().flatten()
}

/// Returns the value that the calling thread stored for the pool `id`, if that was the last pool
/// for which [`get_fast`] found one.
///
/// Cost: a comparison.
///
/// ```
/// use bufkit::thread_cache;
///
/// let pool = thread_cache::new_id()?;
/// assert_eq!(thread_cache::get_last(pool), None); // nothing was remembered
/// # Ok::<(), bufcore::Error>(())
/// ```
#[inline(always)]
#[must_use]
pub fn get_last(id: usize) -> Option<NonNull<()>> {
    let find = |local: &Local| (local.last.id.get() == id).then(|| local.last.value.get());
    LOCAL.try_with(find).ok().flatten()
}

/// Makes the next [`get_fast`] return `value`, until the cache for the pool is off the thread's
/// list.
///
/// # Safety
///
/// 1. The calling thread has a cache for the pool `id` on its list.
/// 2. `value` is valid for the callers of [`get_fast`] whenever they ask for this pool while that
///    cache is on the list. Only the strategy that made the pool, and got `id` from [`new_id`], can
///    guarantee that.
///
/// ```
/// use std::ptr::{self, NonNull};
///
/// use bufkit::thread_cache::{Cache, Methods, self};
///
/// static METHODS: Methods =
///     Methods { is_closed: |_| false, end_of_thread: |_| (), on_pool_closed: |_| () };
///
/// let pool = thread_cache::new_id()?;
/// thread_cache::register().expect("the thread is not ending");
/// let cache = NonNull::from(Box::leak(Box::new(Cache::new(pool, &METHODS))));
/// // SAFETY: a new cache of this thread's, which is never freed.
/// unsafe { thread_cache::add(cache) };
/// assert_eq!(thread_cache::get_fast(pool), None);
/// // SAFETY: the cache is on the list, and the value is its address.
/// unsafe { thread_cache::set_fast(pool, cache.cast()) };
/// assert_eq!(thread_cache::get_fast(pool), Some(cache.cast()));
/// assert_eq!(thread_cache::get_last(pool), Some(cache.cast()));
/// assert_eq!(thread_cache::get_fast(thread_cache::new_id()?), None); // that of another pool
/// // SAFETY: the pool is this example's; its caches are never freed.
/// let removed = unsafe { thread_cache::remove(pool) };
/// assert!(ptr::eq(removed, cache.as_ptr()) && thread_cache::get_fast(pool).is_none());
/// # Ok::<(), bufcore::Error>(())
/// ```
pub unsafe fn set_fast(id: usize, value: NonNull<()>) {
    let _ = LOCAL.try_with(|local| {
        local.of(id).iter().for_each(|entry| entry.set(id, value));
    });
}

/// Clears the entry of the pool `id` (L1).
fn forget(id: usize) {
    let _ = LOCAL.try_with(|local| {
        for entry in local.of(id).iter().filter(|entry| entry.id.get() == id) {
            entry.id.set(0);
        }
    });
}

/// Gives the calling thread a token, if it has none. It returns `None` if the thread is exiting and
/// keeps no caches any more.
///
/// Cost: on a thread's first call, the standard library registers a destructor. The library may
/// allocate a few bytes for that, and aborts the process on failure.
///
/// ```
/// use bufkit::thread_cache;
///
/// let here = thread_cache::register().expect("the thread is not ending");
/// assert_eq!(thread_cache::token(), here);
/// assert_ne!(std::thread::spawn(thread_cache::register).join().unwrap(), Some(here));
/// ```
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

/// Runs `f`, which calls no code of the user's (L4), with the calling thread's list; `None` for a
/// thread that has no caches.
fn with_caches<R>(f: impl FnOnce(&Caches) -> R) -> Option<R> {
    // A thread without a token has used no pool; asking for its list would register the destructor.
    if token() == NO_TOKEN {
        return None;
    }
    CACHES.try_with(f).ok()
}

/// Returns the calling thread's cache for the pool `id`, or null if there is none.
///
/// It drops some other caches whose pool was dropped, so that a thread that keeps using pools holds
/// few of them. User code may therefore run in it.
///
/// Cost: one step for every two bits in which the numbers of the thread's pools differ.
#[must_use]
pub fn find(id: usize) -> *const Cache {
    let look = |caches: &Caches| {
        let found = caches.get(id);
        let looks = if found.is_null() { LOOKS.1 } else { LOOKS.0 };
        let mut closed = Chain::new();
        caches.look_round(looks, |cache| {
            // SAFETY: on this thread's list (L2).
            let is_gone = cache.id() != id && unsafe { (cache.methods().is_closed)(NonNull::from(cache)) };
            if is_gone {
                forget(cache.id());
                closed.push(caches, cache);
            }
        });
        (found, closed)
    };
    let (found, closed) = with_caches(look).unwrap_or((ptr::null(), Chain::new()));
    if closed.is_empty() {
        return found;
    }
    on_pool_closed(closed);
    // Anything may have become of it.
    recall(id)
}

/// Returns the calling thread's cache for the pool `id`, or null, as [`find`] does, but drops no
/// other cache: for requests that must be cheap. No user code runs in it.
///
/// ```
/// use bufkit::thread_cache;
///
/// let pool = thread_cache::new_id()?;
/// assert!(thread_cache::recall(pool).is_null());
/// # Ok::<(), bufcore::Error>(())
/// ```
#[inline]
#[must_use]
pub fn recall(id: usize) -> *const Cache {
    with_caches(|caches| caches.get(id)).unwrap_or(ptr::null())
}

/// Adds a new cache of this thread. The thread has a token.
///
/// # Safety
///
/// 1. The cache is on no list. It is valid until [`remove`] has returned it, or until one of its
///    [`Methods`] that takes it off the list was called.
/// 2. Its methods are for caches of its kind. Its header is the first field of a `repr(C)` type,
///    whose address this is.
/// 3. Its number came from [`new_id`], and the thread has no other cache with it on its list. Code
///    that casts the result of [`find`] or [`remove`] for this number casts it to the type of the
///    cache.
pub unsafe fn add(cache: NonNull<Cache>) {
    // SAFETY: the caller's promise.
    let head = unsafe { cache.as_ref() };
    let added = with_caches(|caches| caches.add(head));
    debug_assert!(added.is_some(), "a thread with a token has a list until it ends");
}

/// Takes the cache for the pool `id` off the calling thread's list and returns it, or null if it is
/// not there.
///
/// # Safety
///
/// The caller made the pool, and must do what the methods of the cache would do: they are not
/// called any more.
#[must_use]
pub unsafe fn remove(id: usize) -> *const Cache {
    let remove = |caches: &Caches| {
        let cache = caches.get(id);
        // SAFETY: caches of this thread's are valid (L2).
        if let Some(cache) = unsafe { cache.as_ref() } {
            caches.remove(cache);
            forget(id);
        }
        cache
    };
    with_caches(remove).unwrap_or(ptr::null())
}
