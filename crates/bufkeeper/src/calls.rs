//! The calls that a sleeping keeper gets: from pools that grew, from new pools, and for its end.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::task::{Context, Waker};
use std::sync::OnceLock;
use std::thread::{self, Thread};

use super::trim::Watch;
use super::watched::Watched;
use bufcore::author::catch_user_panic;
use bufkit::sync::{AtomicU32, Mutex, Ordering, lock};

/// What a keeper and those who call it share.
pub(super) struct Calls {
    /// Not 0 when there was a call since the last look.
    is_called: AtomicU32,
    /// Not 0 when the keeper is to end.
    is_stopped: AtomicU32,
    /// The keeper, if it is a thread.
    thread: OnceLock<Thread>,
    /// The keeper, if it is a task that sleeps.
    task: Mutex<Option<Waker>>,
    new: Mutex<New>,
}

/// Pools that the keeper does not know yet. Nothing is allocated, freed or dropped while they are
/// locked: that is users' code, which may come back in.
#[derive(Default)]
struct New {
    pools: Vec<Watched>,
    /// Nobody will take any.
    has_ended: bool,
}

impl Calls {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            is_called: AtomicU32::new(0),
            is_stopped: AtomicU32::new(0),
            thread: OnceLock::new(),
            task: Mutex::new(None),
            new: Mutex::new(New::default()),
        })
    }

    /// Makes the keeper look.
    fn call(&self) {
        // ORDER: Relaxed: `unpark`, or the lock of `task`, orders it before the keeper's next look
        // at it.
        self.is_called.store(1, Ordering::Relaxed);
        // Before the look at `thread`: either that is there, or the keeper comes to the lock later,
        // in `is_this_thread`, and looks at what was stored above after that.
        let task = lock(&self.task).take();
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Makes the keeper end.
    pub(super) fn stop(&self) {
        // ORDER: Relaxed: as in `call`, which follows.
        self.is_stopped.store(1, Ordering::Relaxed);
        self.call();
    }

    pub(super) fn is_stopped(&self) -> bool {
        // ORDER: Relaxed: as in `call`.
        self.is_stopped.load(Ordering::Relaxed) != 0
    }

    /// Notes that the calling thread is the keeper.
    pub(super) fn is_this_thread(&self) {
        let _is_first = self.thread.set(thread::current());
        // Whoever had this lock before, and saw no thread, is seen to have called: see `call`.
        drop(lock(&self.task));
    }

    /// Returns whether there was a call since the last `take_call`.
    pub(super) fn is_called(&self) -> bool {
        // ORDER: Relaxed: as in `call`.
        self.is_called.load(Ordering::Relaxed) != 0
    }

    /// Returns whether there was a call; if not, the next one wakes the task. The caller is the
    /// keeper.
    pub(super) fn is_called_or_wakes(&self, cx: &Context<'_>) -> bool {
        // Wakers are users' code: cloned and dropped with nothing locked.
        let waker = cx.waker().clone();
        let old = lock(&self.task).replace(waker);
        drop(old);
        self.is_called()
    }

    /// Takes note of calls. The caller is the keeper.
    pub(super) fn take_call(&self) -> bool {
        // ORDER: Relaxed: as in `call`. A call that comes right after it finds 0, and calls again.
        self.is_called.swap(0, Ordering::Relaxed) != 0
    }

    /// Moves the pools that came since the last time to `watched`. The caller is the keeper. They
    /// stay where they are while there is no memory for the list.
    pub(super) fn take_new(&self, watched: &mut Vec<Watched>) {
        let pools = {
            let mut new = lock(&self.new);
            if watched.try_reserve(new.pools.len()).is_err() {
                return;
            }
            mem::take(&mut new.pools)
        };
        for pool in pools {
            if pool.is_among(watched) {
                // Users' code again.
                let _dropped = catch_user_panic(|| drop(pool));
            } else {
                watched.push(pool);
            }
        }
    }

    /// Gives the keeper another pool.
    fn watch<P: Watch + ?Sized>(&self, pool: &P) {
        // Users' code, whose drop comes after that of the guard.
        let pool = Watched::new(pool.downgrade());
        let mut new = lock(&self.new);
        if new.has_ended || pool.is_among(&new.pools) {
            return;
        }
        new.pools.push(pool);
        drop(new);
        self.call();
    }

    pub(super) fn end(&self) {
        let task = lock(&self.task).take();
        let mut pools = {
            let mut new = lock(&self.new);
            new.has_ended = true;
            mem::take(&mut new.pools)
        };
        // Users' code, with nothing locked.
        let _dropped = catch_user_panic(|| drop(task));
        Watched::forget_unless(&mut pools, |_| false);
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

/// Adds pools to a running [`Keeper`](crate::Keeper). Clones belong to the same keeper.
///
/// It does not keep the keeper alive. After the keeper's end, it does nothing.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// # use bufcore::PoolStats;
/// # use bufkeeper::Trim;
/// use bufkeeper::Keeper;
///
/// # struct Pool;
/// # impl Trim for &Pool {
/// #     fn trim(&mut self) {}
/// #     fn stats(&self) -> Option<PoolStats> {
/// #         None
/// #     }
/// # }
/// let mut keeper = Keeper::new();
/// let handle = keeper.handle();
/// let later = std::thread::spawn(move || {
///     let pool = Arc::new(Pool); // any pool that implements `Watch`
///     handle.watch(&pool);
///     pool
/// });
/// let pool = later.join().unwrap();
/// keeper.tick(Instant::now());
/// assert_eq!(keeper.watched(), 1);
/// # drop(pool);
/// ```
#[derive(Clone)]
pub struct KeeperHandle {
    pub(super) calls: Arc<Calls>,
}

impl KeeperHandle {
    /// Adds a pool to the keeper, which does not keep the pool alive.
    ///
    /// After the keeper's end, it does nothing.
    ///
    /// Cost: an allocation, and a short lock.
    pub fn watch<P: Watch + ?Sized>(&self, pool: &P) {
        self.calls.watch(pool);
    }
}

impl fmt::Debug for KeeperHandle {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeeperHandle").finish_non_exhaustive()
    }
}
