//! A thread's caches: a search tree and a ring, both of links in the caches themselves, so that
//! nothing is allocated.
//!
//! # Invariants
//!
//! - C1: a cache's place is found by its number. The last digit (of `ROOTS`) says in which tree it
//!   is. The further ones (of `WAYS`) lead from cache to cache, and its place is the first on this
//!   way that is not another's. So there is no need for a balance: a way is no longer than the
//!   number, and for numbers that lie close together as long as their logarithm.
//! - C2: a cache is in the tree and in the ring, or in neither; `round` is a cache of the ring, or
//!   null when it is empty.
//! - C3: a cache in a `Chain` is off the list, and `next` leads to the one behind it.

use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

use super::{Methods, process};

/// Trees.
const ROOTS: usize = 8;
/// Branches of each cache.
const WAYS: usize = 4;

/// The header of a cache of a thread for one pool. It is the first field of a `repr(C)` cache.
///
/// ```
/// use std::cell::Cell;
/// use std::ptr::NonNull;
///
/// use bufkit::thread_cache::{Cache, Methods, self};
///
/// /// What a thread has in one pool.
/// #[repr(C)]
/// struct Local {
///     head: Cache,
///     blocks: Cell<usize>,
/// }
///
/// unsafe fn end(cache: NonNull<Cache>) {
///     // SAFETY: the head of a boxed cache that is off the list.
///     drop(unsafe { Box::from_raw(cache.cast::<Local>().as_ptr()) });
/// }
///
/// static METHODS: Methods = Methods { is_closed: |_| false, end_of_thread: end, on_pool_closed: end };
///
/// let pool = thread_cache::new_id()?;
/// thread_cache::register().expect("the thread is not ending");
/// let local = Local { head: Cache::new(pool, &METHODS), blocks: Cell::new(0) };
/// // SAFETY: a new cache of this thread's, with a number of its own and methods of its kind.
/// unsafe { thread_cache::add(NonNull::from(Box::leak(Box::new(local))).cast()) };
///
/// let found = thread_cache::find(pool).cast::<Local>();
/// // SAFETY: on this thread's list.
/// let local = unsafe { found.as_ref() }.expect("just added");
/// local.blocks.set(local.blocks.get() + 1);
/// assert_eq!((local.head.id(), local.blocks.get()), (pool, 1));
/// assert!(std::thread::spawn(move || thread_cache::find(pool).is_null()).join().unwrap());
/// # Ok::<(), bufcore::Error>(())
/// ```
#[repr(C)]
pub struct Cache {
    /// The pool's number.
    id: usize,
    /// The caches behind this one in its tree (C1), the thread's own.
    ways: [Cell<*const Cache>; WAYS],
    methods: &'static Methods,
    /// The neighbours in the ring, the thread's own.
    next: Cell<*const Cache>,
    previous: Cell<*const Cache>,
}

// A search reads one cache line of each cache.
const _: () = assert!(size_of::<Cache>() <= bufcore::size::CACHE_LINE_BYTES);

impl Cache {
    /// Makes the header of a cache for the pool `id`, which is on no list.
    #[must_use]
    pub fn new(id: usize, methods: &'static Methods) -> Self {
        Self {
            id,
            ways: [const { Cell::new(ptr::null()) }; WAYS],
            methods,
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
        }
    }

    /// Returns the pool's number.
    #[inline]
    #[must_use]
    pub fn id(&self) -> usize {
        self.id
    }

    pub(super) fn methods(&self) -> &'static Methods {
        self.methods
    }
}

impl fmt::Debug for Cache {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The caches of a thread. All of them are valid (`threads`, L2).
pub(super) struct Caches {
    roots: [Cell<*const Cache>; ROOTS],
    /// The cache of the ring at which the next look round begins.
    round: Cell<*const Cache>,
    /// The process that the first cache came in.
    process: Cell<u32>,
}

/// Follows a link to a cache, which is valid as long as the list is borrowed.
///
/// # Safety
///
/// The cache is on the list that is borrowed for `'a`, or there is none.
unsafe fn follow<'a>(link: &Cell<*const Cache>) -> Option<&'a Cache> {
    // SAFETY: the caller's promise; valid while it is on the list, from which nothing goes without
    // the list (`threads`, L4).
    unsafe { link.get().as_ref() }
}

impl Caches {
    pub(super) const fn new() -> Self {
        Self {
            roots: [const { Cell::new(ptr::null()) }; ROOTS],
            round: Cell::new(ptr::null()),
            process: Cell::new(0),
        }
    }

    /// Returns whether the caches, if there are any, are of the process with this number.
    pub(super) fn are_of(&self, process: u32) -> bool {
        self.round.get().is_null() || self.process.get() == process
    }

    /// Returns the link that leads to the cache with that number, or that would. Calls `passed` for
    /// each other cache on the way.
    #[inline]
    fn way(&self, id: usize, mut passed: impl FnMut()) -> &Cell<*const Cache> {
        let mut link = &self.roots[id % ROOTS];
        let mut rest = id / ROOTS;
        // SAFETY: in the tree.
        while let Some(cache) = unsafe { follow(link) } {
            if cache.id == id {
                break;
            }
            passed();
            link = &cache.ways[rest % WAYS];
            rest /= WAYS;
        }
        link
    }

    /// Returns the link that leads to the cache with that number, or that would.
    #[inline]
    fn place(&self, id: usize) -> &Cell<*const Cache> {
        self.way(id, || ())
    }

    /// Returns the cache with that number, or null.
    #[inline]
    pub(super) fn get(&self, id: usize) -> *const Cache {
        self.place(id).get()
    }

    /// Adds a cache that is on no list.
    pub(super) fn add(&self, cache: &Cache) {
        let place = self.place(cache.id);
        debug_assert!(place.get().is_null(), "a thread has one cache for a pool");
        cache.ways.iter().for_each(|way| way.set(ptr::null()));
        place.set(cache);
        // SAFETY: in the ring (C2).
        let Some(round) = (unsafe { follow(&self.round) }) else {
            cache.next.set(cache);
            cache.previous.set(cache);
            self.process.set(process());
            return self.round.set(cache);
        };
        // The last that a look round comes to.
        cache.next.set(round);
        cache.previous.set(round.previous.replace(cache));
        // SAFETY: in the ring.
        if let Some(previous) = unsafe { follow(&cache.previous) } {
            previous.next.set(cache);
        }
    }

    /// Takes a cache off the list.
    pub(super) fn remove(&self, cache: &Cache) {
        let place = self.place(cache.id);
        debug_assert!(ptr::eq(place.get(), cache), "it is on the list");
        // Any cache behind it can take its place, since its own way goes through there; one without
        // others behind it is easily moved.
        let mut last = place;
        // SAFETY: in the tree.
        while let Some(cache) = unsafe { follow(last) } {
            let Some(way) = cache.ways.iter().find(|way| !way.get().is_null()) else { break };
            last = way;
        }
        let heir = last.replace(ptr::null());
        if !ptr::eq(heir, cache) {
            // SAFETY: in the tree until just now, and again in a moment.
            if let Some(heir) = unsafe { heir.as_ref() } {
                heir.ways.iter().zip(&cache.ways).for_each(|(to, from)| to.set(from.get()));
            }
            place.set(heir);
        }
        // SAFETY: in the ring, as are its neighbours.
        if let Some(previous) = unsafe { follow(&cache.previous) } {
            previous.next.set(cache.next.get());
        }
        // SAFETY: likewise.
        if let Some(next) = unsafe { follow(&cache.next) } {
            next.previous.set(cache.previous.get());
        }
        if ptr::eq(self.round.get(), cache) {
            let is_only = ptr::eq(cache.next.get(), cache);
            self.round.set(if is_only { ptr::null() } else { cache.next.get() });
        }
    }

    /// Shows `f`, which may take it off, the next caches of the ring, at most `looks` of them.
    pub(super) fn look_round(&self, looks: usize, mut f: impl FnMut(&Cache)) {
        for _ in 0..looks {
            // SAFETY: in the ring (C2).
            let Some(cache) = (unsafe { follow(&self.round) }) else { return };
            self.round.set(cache.next.get());
            f(cache);
        }
    }

    /// Takes all caches off.
    pub(super) fn take_all(&self) -> Chain {
        self.roots.iter().for_each(|root| root.set(ptr::null()));
        let first = self.round.replace(ptr::null());
        // SAFETY: in the ring until just now.
        if let Some(first) = unsafe { first.as_ref() }
            // SAFETY: likewise.
            && let Some(last) = unsafe { follow(&first.previous) }
        {
            last.next.set(ptr::null());
        }
        Chain { first }
    }
}

/// Caches that were taken off a list, for their methods to be called when nothing is borrowed any
/// more (C3).
pub(super) struct Chain {
    first: *const Cache,
}

impl Chain {
    pub(super) fn new() -> Self {
        Self { first: ptr::null() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Moves a cache from the list to the chain.
    pub(super) fn push(&mut self, caches: &Caches, cache: &Cache) {
        caches.remove(cache);
        cache.next.set(self.first);
        self.first = cache;
    }

    pub(super) fn pop(&mut self) -> Option<NonNull<Cache>> {
        let cache = NonNull::new(self.first.cast_mut())?;
        // SAFETY: valid until its method is called, which is after it was popped.
        self.first = unsafe { cache.as_ref() }.next.get();
        Some(cache)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;

    static METHODS: Methods = Methods { is_closed: |_| false, end_of_thread: |_| (), on_pool_closed: |_| () };

    /// Returns numbers that are close together, far apart in steps of every kind, and large.
    fn numbers() -> impl Iterator<Item = usize> {
        let steps = (0..12).flat_map(|step| (1..20).map(move |number| number * 3_usize.pow(step)));
        let large = (0..20).flat_map(|bits| [usize::MAX >> bits, (usize::MAX << bits) & (usize::MAX / 2)]);
        (1..300).chain(steps).chain(large)
    }

    fn check(caches: &Caches, model: &BTreeMap<usize, Box<Cache>>) {
        for (id, cache) in model {
            assert!(ptr::eq(caches.get(*id), &raw const **cache), "{id} is found");
        }
        let mut ring = Vec::new();
        caches.look_round(model.len(), |cache| ring.push(cache.id));
        ring.sort_unstable();
        assert!(ring.iter().eq(model.keys()), "the ring has each of them once");
        assert_eq!(caches.round.get().is_null(), model.is_empty());
    }

    #[test]
    fn a_list_and_a_map() {
        let numbers: Vec<_> = numbers().collect();
        let caches = Caches::new();
        let mut model: BTreeMap<usize, Box<Cache>> = BTreeMap::new();
        let mut random = 7_usize;
        for step in 0..6000 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D_u64 as usize).wrapping_add(12345);
            let id = numbers[(random >> 12) % numbers.len()];
            // More are added than removed at first, and all are removed in the end.
            if let Some(cache) = model.remove(&id) {
                caches.remove(&cache);
            } else if step < 3000 {
                let cache = Box::new(Cache::new(id, &METHODS));
                caches.add(&cache);
                model.insert(id, cache);
            }
            assert_eq!(caches.get(id).is_null(), !model.contains_key(&id));
            if step % 64 == 0 {
                check(&caches, &model);
            }
        }
        let mut chain = Chain::new();
        caches.look_round(model.len() / 2, |cache| chain.push(&caches, cache));
        while let Some(cache) = chain.pop() {
            // SAFETY: the model keeps it.
            model.remove(&unsafe { cache.as_ref() }.id);
        }
        check(&caches, &model);
        let mut all = caches.take_all();
        let count = core::iter::from_fn(|| all.pop()).count();
        assert_eq!(count, model.len());
        assert!(numbers.iter().all(|&id| caches.get(id).is_null()));
    }

    /// Of 4096 pools that a thread uses, each is found behind few others (T26).
    #[test]
    fn t26_ways_are_short() {
        let caches = Caches::new();
        let all: Vec<_> = (1..=4096).map(|number| Box::new(Cache::new(number, &METHODS))).collect();
        all.iter().for_each(|cache| caches.add(cache));
        let passed = |id: usize| {
            let mut passed = 0;
            assert!(!caches.way(id, || passed += 1).get().is_null(), "{id} is found");
            passed
        };
        let most = (1..=4096).map(passed).max();
        // The list calls methods when it goes.
        let _ = caches.take_all();
        assert!(most <= Some(6), "{most:?}");
    }
}
