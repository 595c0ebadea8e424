//! The monitor: its pools, and how they are read with nothing locked.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::fmt;
use core::mem;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bufcore::PoolStats;
use bufcore::author::catch_user_panic;
#[cfg(feature = "tracing")]
use bufkeeper::PressureLevel;
use bufkeeper::{Watch, WeakPool};

use super::published::Published;
use super::reading::{Reading, add, add_counters, risen};

/// Reads the statistics of named pools on demand. Clones have the same pools.
///
/// It keeps no pool alive. The [module](super) describes the exported numbers.
///
/// Threads: any thread may use it at any time. If two threads read at once, one of them may get the
/// numbers of the other, which are slightly older.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use bufworks::any::AnyBuilder;
/// use bufworks::monitor::Monitor;
///
/// let pool = Arc::new(Mutex::new("heap".parse::<AnyBuilder>()?.build()?));
/// let monitor = Monitor::new();
/// monitor.watch("packets", &pool);
/// assert_eq!(monitor.read().len(), 1);
/// drop(pool);
/// assert!(monitor.read().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Monitor {
    shared: Arc<Shared>,
}

/// What the clones of a monitor have together.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

/// Nothing is allocated, freed or called while it is locked: that is users' code, which may come
/// back in.
#[derive(Default)]
struct State {
    /// Never fewer: pools have their name by its place.
    names: Vec<Name>,
    /// In the order of their numbers.
    pools: Vec<Watched>,
    /// The number of the next pool.
    next: u64,
    /// The pressure that subscribers know of.
    #[cfg(feature = "tracing")]
    level: PressureLevel,
}

struct Name {
    text: Arc<str>,
    /// The counters of those that have ended.
    ended: PoolStats,
    /// What subscribers know of.
    #[cfg(feature = "tracing")]
    told: PoolStats,
}

struct Watched {
    number: u64,
    /// The place of its name.
    name: usize,
    id: Option<(TypeId, usize)>,
    /// `None` while a thread looks at it.
    pool: Option<Box<dyn WeakPool>>,
    /// What it said last; `None` before the first time.
    last: Option<PoolStats>,
    /// How long a request had been waiting then.
    stalled: Duration,
}

/// A look at a pool.
struct Look {
    number: u64,
    pool: Box<dyn WeakPool>,
    /// What the pool said. `None` when it could not tell.
    stats: Option<PoolStats>,
    stalled: Duration,
    has_ended: bool,
}

/// What was read of a name, whether or not it has pools now.
pub(super) struct Read {
    pub(super) reading: Reading,
    /// What subscribers knew before.
    #[cfg(feature = "tracing")]
    pub(super) told: PoolStats,
}

impl Monitor {
    /// Makes a monitor without pools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pool under a name, which other pools may have too. The monitor does not keep the pool
    /// alive.
    ///
    /// It accepts what a [`Keeper`](crate::Keeper) accepts: shared pools, and any other pool in an
    /// `Arc<Mutex<_>>`. While another thread holds the mutex, the numbers are those of the last
    /// read. For a pool that one thread owns, use [`publish`](Self::publish).
    ///
    /// A pool that already has this name is not added again, nor is a clone of such a pool. A pool
    /// that has several names is part of each sum.
    ///
    /// Cost: two allocations, and a comparison with each pool of the monitor. If its list is full,
    /// it removes dropped pools, so the list has at most twice as many entries as live pools.
    ///
    /// ```
    /// # #[cfg(feature = "slot")] {
    /// use std::sync::{Arc, Mutex};
    /// use bufworks::monitor::Monitor;
    /// use bufworks::slot::SlotPool;
    ///
    /// let pool = Arc::new(Mutex::new(SlotPool::new(64 * 1024, 8)?));
    /// let monitor = Monitor::new();
    /// monitor.watch("frames", &pool);
    /// assert_eq!(monitor.read()[0].stats.reserved_bytes, pool.lock().unwrap().stats().reserved_bytes);
    /// # }
    /// # Ok::<(), bufworks::Error>(())
    /// ```
    pub fn watch<P: Watch + ?Sized>(&self, name: &str, pool: &P) {
        let pool = pool.downgrade();
        let id = pool.id();
        // Users' code: dropped behind the lock.
        let mut pool = Some(pool);
        let is_full = |state: &State| state.pools.len() == state.pools.capacity();
        if is_full(&self.lock()) {
            self.pass(false, false);
        }
        let mut state = self.lock();
        let place = state.names.iter().position(|known| &*known.text == name).unwrap_or_else(|| {
            state.names.push(Name::new(Arc::from(name)));
            state.names.len() - 1
        });
        let is_same = |watched: &Watched| watched.id == id && watched.name == place;
        if id.is_none() || !state.pools.iter().any(is_same) {
            let number = state.next;
            state.next += 1;
            let most = 2 * state.pools.len();
            state.pools.shrink_to(most);
            state.pools.push(Watched {
                number,
                name: place,
                id,
                pool: pool.take(),
                last: None,
                stalled: Duration::ZERO,
            });
        }
    }

    /// Adds the name of a pool that one thread owns. The thread writes the pool's statistics into
    /// the returned value periodically; the name exists until that value is dropped.
    #[must_use = "the name is there until this is dropped"]
    pub fn publish(&self, name: &str) -> Published {
        let published = Published::new();
        self.watch(name, published.shared());
        published
    }

    /// Reads the pools: one [`Reading`] for each name, in the order in which the names were added.
    ///
    /// Cost: the strategy's [`stats`](crate::BufferPool::stats) for each pool, and three
    /// allocations in all.
    ///
    /// ```
    /// use bufworks::HeapPool;
    /// use bufworks::monitor::Monitor;
    ///
    /// let monitor = Monitor::new();
    /// let (one, other) = (monitor.publish("packets"), monitor.publish("packets"));
    /// let mut pool = HeapPool::new();
    /// let _packet = pool.acquire(1500)?;
    /// one.set(pool.stats());
    /// other.set(pool.stats());
    /// let packets = &monitor.read()[0];
    /// assert_eq!((packets.pools, packets.stats.reserved_bytes), (2, 2 * pool.stats().reserved_bytes));
    /// # Ok::<(), bufworks::AcquireError>(())
    /// ```
    #[must_use]
    pub fn read(&self) -> Vec<Reading> {
        let alive = |read: Read| (read.reading.pools > 0).then_some(read.reading);
        self.read_all(false).into_iter().filter_map(alive).collect()
    }

    /// Reads the pools of all names, those included that have none now. `tells` says whether
    /// subscribers will know of what is read.
    pub(super) fn read_all(&self, tells: bool) -> Vec<Read> {
        self.pass(true, tells)
    }

    /// Lets go of the pools that have ended, after it has read the others if it `reads`.
    fn pass(&self, reads: bool, tells: bool) -> Vec<Read> {
        let mut looks = self.lock().take();
        for look in &mut looks {
            look.look(reads);
        }
        let (ended, back): (Vec<_>, Vec<_>) = looks.into_iter().partition(|look| look.has_ended);
        let mut state = self.lock();
        state.put_back(back, &ended);
        let all = state.sum(tells);
        drop(state);
        for look in ended {
            // Users' code again.
            let _dropped = catch_user_panic(|| drop(look));
        }
        all
    }

    /// Replaces the pressure that subscribers know of, and returns what it was.
    #[cfg(feature = "tracing")]
    pub(super) fn replace_level(&self, level: PressureLevel) -> PressureLevel {
        mem::replace(&mut self.lock().level, level)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that panics runs under it.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the pools that no other thread looks at.
    fn take(&mut self) -> Vec<Look> {
        let looks = self.pools.iter_mut().filter_map(|watched| {
            let (number, pool) = (watched.number, watched.pool.take()?);
            Some(Look { number, pool, stats: None, stalled: Duration::ZERO, has_ended: false })
        });
        looks.collect()
    }

    /// Puts those of `back` back, and forgets those that have `ended`. Both are in the order of
    /// their numbers.
    fn put_back(&mut self, back: Vec<Look>, ended: &[Look]) {
        for look in back {
            if let Ok(place) = self.pools.binary_search_by_key(&look.number, |watched| watched.number) {
                let watched = &mut self.pools[place];
                watched.pool = Some(look.pool);
                if let Some(stats) = look.stats {
                    watched.last = Some(risen(&watched.last.unwrap_or_default(), stats));
                    watched.stalled = look.stalled;
                }
            }
        }
        let Self { names, pools, .. } = self;
        pools.retain(|watched| {
            let is_kept = ended.binary_search_by_key(&watched.number, |look| look.number).is_err();
            if !is_kept && let Some(last) = &watched.last {
                add_counters(&mut names[watched.name].ended, last);
            }
            is_kept
        });
    }

    /// Returns the sums by name.
    fn sum(&mut self, tells: bool) -> Vec<Read> {
        let names = self.names.iter().map(|name| Read {
            reading: Reading {
                name: Arc::clone(&name.text),
                pools: 0,
                stats: name.ended,
                stalled: Duration::ZERO,
            },
            #[cfg(feature = "tracing")]
            told: name.told,
        });
        let mut all: Vec<_> = names.collect();
        for watched in &self.pools {
            if let Some(last) = &watched.last {
                let reading = &mut all[watched.name].reading;
                reading.pools += 1;
                add(&mut reading.stats, last);
                reading.stalled = reading.stalled.max(watched.stalled);
            }
        }
        #[cfg(feature = "tracing")]
        if tells {
            for (name, read) in self.names.iter_mut().zip(&all) {
                name.told = read.reading.stats;
            }
        }
        #[cfg(not(feature = "tracing"))]
        let _ = tells;
        all
    }
}

impl Name {
    fn new(text: Arc<str>) -> Self {
        Self {
            text,
            ended: PoolStats::default(),
            #[cfg(feature = "tracing")]
            told: PoolStats::default(),
        }
    }
}

impl Look {
    /// Asks the pool. One whose code panics counts as ended, as with a keeper.
    fn look(&mut self, reads: bool) {
        let Self { pool, stats, stalled, .. } = self;
        let found = catch_user_panic(|| {
            pool.with(&mut |pool| {
                if reads {
                    *stats = pool.stats();
                    *stalled = pool.stalled().unwrap_or_default();
                }
            })
        });
        self.has_ended = found != Some(true);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for watched in mem::take(&mut state.pools) {
            // Users' code, which may panic, perhaps while this thread unwinds.
            let _dropped = catch_user_panic(|| drop(watched));
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}
