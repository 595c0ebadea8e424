//! A pool for each thread: strategies of one thread at a time, in programs of many.

mod local;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, mem};

use bufcore::{AcquireError, Buf, BufferPool, ConfigError, PoolStats, SharedPool};
use bufkit::sync::biased::{self, Owned, Used, Watched};
use bufkit::sync::{Mutex, lock};

/// How long a thread sleeps whose pool somebody looks at for long.
const PAUSE: Duration = Duration::from_micros(100);

/// Pools of one kind, one for each acquiring thread: a handle that threads clone or share.
///
/// A slot pool or a ring serves one thread at a time. This makes one for each thread, by a closure.
/// A buffer belongs to the pool of the thread that acquired it. It is released on any thread, and
/// outlives the thread and the handles.
///
/// - The pool of an exited thread is reused by the next new thread. There are therefore at most as
///   many pools as threads that use this handle at once, plus one for each reentrant request, for
///   example from the pool's fallback or from the destructor of a thread-local. Reentrant requests
///   are served like all others.
/// - Dropping the last handle drops the pools, whatever their threads do. A pool that serves a
///   request at that moment lives until its thread ends or takes its first pool of another handle;
///   so do the pools of all threads if the system refuses a fence (`membarrier(2)`).
/// - Between `fork` and `exec` a child process must not use the handle; it may exit.
/// - `grow` moves a buffer that was acquired on another thread to the pool of this one.
///
/// Memory: the limit of each pool applies to each thread. For one limit over all threads, and for
/// buffers of many sizes, use the sharded pool. A release on another thread does not notify the
/// pool, which finds the memory by a bounded search.
///
/// Cost: in addition to the strategy's, two plain stores, and a binary search among this thread's
/// pools if its last request was to another handle: as much as a whole request of the sharded pool.
///
/// ```
/// # #[cfg(feature = "slot")] {
/// use bufworks::PerThread;
/// use bufworks::slot::SlotPool;
///
/// let pool = PerThread::new(|| SlotPool::new(4096, 64))?; // bytes, slots of each thread
/// let workers = [1, 2, 3].map(|worker| {
///     let pool = pool.clone();
///     std::thread::spawn(move || {
///         let mut buf = pool.acquire(1500)?;
///         buf.extend_from_slice(&[worker; 100])?;
///         Ok::<_, bufworks::Error>(buf)
///     })
/// });
/// for (worker, buf) in (1..).zip(workers.map(|thread| thread.join().unwrap())) {
///     assert_eq!(buf?, [worker; 100]); // its thread has ended
/// }
/// # }
/// # Ok::<(), bufworks::Error>(())
/// ```
pub struct PerThread<P: BufferPool + Send + 'static> {
    shared: Arc<Shared<P>>,
}

/// What the handles share.
struct Shared<P> {
    make: Box<dyn Fn() -> Result<P, ConfigError> + Send + Sync>,
    max_capacity: usize,
    pools: Mutex<Pools<P>>,
}

struct Pools<P> {
    /// All of them, and what they had counted when they were last looked at.
    all: Vec<(Watched<Option<P>>, PoolStats)>,
    /// Those that no thread has.
    idle: Vec<Owned<Option<P>>>,
}

/// A pool that a thread has. Dropped, it serves another one.
struct Held<P> {
    /// `None` in neither, until the handles or this are dropped.
    pool: Option<Owned<Option<P>>>,
    home: Weak<Shared<P>>,
}

/// Evaluates `$call` with the pool of this thread, or with an idle one where that is in use, or
/// where the thread has no variables any more. Not a closure, which would be the caller that is
/// tracked.
macro_rules! on_pool {
    ($self:ident, $requested:expr, $pool:ident => $call:expr) => {{
        if let Some(held) = local::find(&$self.shared)
            && let Some(mut used) = held.enter()
            && let Some($pool) = used.as_mut()
        {
            return $call;
        }
        loop {
            let Some(other) = Held::of(&$self.shared) else {
                return Err(AcquireError::OutOfMemory { requested: $requested });
            };
            let result = match other.enter().as_mut().and_then(|used| used.as_mut()) {
                Some($pool) => $call,
                // This thread looks at pools, and another one has begun to look at this one.
                None => continue,
            };
            local::keep(other);
            return result;
        }
    }};
}

impl<P: BufferPool + Send + 'static> PerThread<P> {
    /// Makes a handle, whose pools are made by `make`. The first pool is made now, for the first
    /// thread that acquires.
    ///
    /// `make` is called when a thread acquires and no pool is idle. All pools should have the same
    /// settings.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub fn new(
        make: impl Fn() -> Result<P, ConfigError> + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let first = make()?;
        let max_capacity = first.max_capacity();
        let (owned, watched) = biased::new(Some(first));
        let pools = Pools { all: [(watched, PoolStats::default())].into(), idle: [owned].into() };
        let make = Box::new(make);
        Ok(Self { shared: Arc::new(Shared { make, max_capacity, pools: Mutex::new(pools) }) })
    }

    /// Takes one empty buffer with room for `capacity` bytes from the pool of this thread; see
    /// [`BufferPool::acquire`].
    ///
    /// # Errors
    ///
    /// The pool's errors; [`AcquireError::OutOfMemory`] if this thread has no pool and none can be
    /// made.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire(&self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
        on_pool!(self, capacity, pool => pool.acquire(capacity))
    }

    /// Takes one buffer with `len` filled bytes, all zero; see [`BufferPool::acquire_zeroed`].
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<P::Lease>, AcquireError> {
        on_pool!(self, len, pool => pool.acquire_zeroed(len))
    }

    /// Makes room in `buf` for at least `additional` bytes after the filled ones; see
    /// [`BufferPool::grow`].
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[cfg_attr(feature = "track", track_caller)]
    pub fn grow(&self, buf: &mut Buf<P::Lease>, additional: usize) -> Result<(), AcquireError> {
        on_pool!(self, additional, pool => pool.grow(buf, additional))
    }

    /// Returns the largest request, in bytes, that can ever succeed, of the first pool.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.shared.max_capacity
    }

    /// Returns the sum of the statistics of all pools. The high-water marks are the sum of the
    /// pools' marks, which need not have occurred at the same time.
    ///
    /// Each thread's next request waits while this reads its pool. The newest counts of a pool are
    /// missing while it serves a long request, such as one that waits for the system, or if the
    /// system refuses a fence (`membarrier(2)`).
    ///
    /// ```
    /// use bufworks::{HeapPool, PerThread};
    ///
    /// let pool = PerThread::new(|| Ok(HeapPool::new()))?;
    /// let here = pool.acquire(1000)?;
    /// let there = std::thread::scope(|scope| scope.spawn(|| pool.acquire(500)).join().unwrap())?;
    /// # #[cfg(feature = "stats")]
    /// assert_eq!((pool.stats().in_use, pool.stats().in_use_bytes), (2, 1500));
    /// # Ok::<(), bufworks::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        // A pool's statistics may be the user's code, and call this again: without the lock.
        let watched: Vec<_> = lock(&self.shared.pools).all.iter().map(|(pool, _)| pool.clone()).collect();
        local::looking(|| {
            for (index, pool) in watched.iter().enumerate() {
                let _ = pool.look(|pool| {
                    let Some(pool) = pool else { return };
                    let seen = pool.stats();
                    // Before the look ends: those of a later look are newer.
                    lock(&self.shared.pools).all[index].1 = seen;
                });
            }
        });
        let mut sum = PoolStats::default();
        lock(&self.shared.pools).all.iter().for_each(|(_, last)| add(&mut sum, last));
        sum
    }
}

fn add(sum: &mut PoolStats, one: &PoolStats) {
    macro_rules! add {
        ($($field:ident)*) => {
            $(sum.$field = sum.$field.saturating_add(one.$field);)*
        };
    }
    add!(acquired reused fresh fallbacks exhausted in_use in_use_bytes high_water high_water_bytes);
    add!(reserved_bytes idle_bytes pinned_bytes);
}

impl<P> Held<P> {
    /// Returns the pool for use, unless this thread is in it already, or looks at it.
    #[inline]
    fn enter(&self) -> Option<Used<'_, Option<P>>> {
        let pool = self.pool.as_ref()?;
        loop {
            if let Some(used) = pool.enter() {
                return Some(used);
            }
            if pool.is_used() || local::is_looking() {
                return None;
            }
            // One that looks at it was interrupted.
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes an idle pool, or makes one.
    #[cold]
    #[inline(never)]
    fn of(shared: &Arc<Shared<P>>) -> Option<Self> {
        let home = Arc::downgrade(shared);
        let mut pools = lock(&shared.pools);
        let idle = if local::is_looking() {
            // This thread cannot use the one that it looks at.
            let at = pools.idle.iter().rposition(|pool| pool.enter().is_some());
            at.map(|at| pools.idle.swap_remove(at))
        } else {
            pools.idle.pop()
        };
        drop(pools);
        if let Some(pool) = idle {
            return Some(Self { pool: Some(pool), home });
        }
        let (pool, watched) = biased::new(Some((shared.make)().ok()?));
        pools = lock(&shared.pools);
        pools.all.push((watched, PoolStats::default()));
        // The end of a thread takes no memory.
        let all = pools.all.len();
        pools.idle.reserve(all);
        Some(Self { pool: Some(pool), home })
    }
}

impl<P> Drop for Held<P> {
    fn drop(&mut self) {
        if let (Some(pool), Some(home)) = (self.pool.take(), self.home.upgrade()) {
            lock(&home.pools).idle.push(pool);
        }
    }
}

impl<P> Drop for Shared<P> {
    fn drop(&mut self) {
        let pools = lock(&self.pools);
        let all: Vec<_> = pools.all.iter().map(|(pool, _)| pool.look(mem::take)).collect();
        drop(pools);
        // Their drop is users' code, too.
        drop(all);
    }
}

impl<P: BufferPool + Send + 'static> Clone for PerThread<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<P: BufferPool + Send + 'static> fmt::Debug for PerThread<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pools = lock(&self.shared.pools).all.len();
        f.debug_struct("PerThread").field("pools", &pools).finish_non_exhaustive()
    }
}

impl<P: BufferPool + Send + 'static> BufferPool for PerThread<P> {
    bufcore::forwarded_pool!(PerThread<P> => P::Lease);
}

impl<P: BufferPool + Send + 'static> BufferPool for &PerThread<P> {
    bufcore::forwarded_pool!(PerThread<P> => P::Lease);
}

impl<P: BufferPool + Send + 'static> SharedPool for PerThread<P> {
    type Lease = P::Lease;

    fn acquire_shared(&self, capacity: usize) -> Result<Buf<P::Lease>, AcquireError> {
        self.acquire(capacity)
    }
}
