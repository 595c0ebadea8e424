//! A pool whose trims and stalled requests are told to the subscriber of the crate `tracing`, by a
//! keeper.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::TypeId;
use core::cell::Cell;
use core::fmt;
use core::task::Waker;
use core::time::Duration;

use bufcore::PoolStats;
use bufcore::author::catch_user_panic;
use bufkeeper::{Trim, Watch, WeakPool};
use tracing::{debug, warn};

use super::events::TARGET;

/// From how long a wait on the subscriber is told of it.
const STALLED: Duration = Duration::from_secs(5);

/// A pool for a [`Keeper`](crate::Keeper), which reports to the subscriber of the crate `tracing`
/// each trim by the keeper, and requests that wait for long.
///
/// The event `a keeper trimmed` is of level debug and target `bufworks::pool`. Its fields are
/// `pool`, `bytes`, `reserved_bytes`, and `cause`: `idle` for idle memory, and `pressure` if the
/// keeper frees all idle memory under memory pressure. Pages that slot pools and rings return to
/// the system remain reserved; there is no event for them.
///
/// The event `the first waiting request was not served` is a warning of the same target. Its fields
/// are `pool`, `seconds`, and `reserved_bytes`. It is sent when the keeper finds that the first
/// request in the queue of a sharded pool has been waiting for five seconds, and again each time
/// that this has doubled. The cause may be a task that holds a buffer while it waits for another
/// one.
///
/// A panic of the subscriber is caught.
///
/// Cost: in addition to the keeper's pass, two reads of the statistics and one of the queue.
///
/// ```
/// # #[cfg(feature = "shard")] {
/// use bufworks::Keeper;
/// use bufworks::monitor::Traced;
/// use bufworks::shard::ShardPool;
///
/// let pool = ShardPool::new()?;
/// let keeper = Keeper::new().watch(&Traced::new("packets", &pool)); // in place of `watch(&pool)`
/// assert_eq!(keeper.watched(), 1);
/// # }
/// # Ok::<(), bufworks::Error>(())
/// ```
pub struct Traced<'a, P: ?Sized> {
    name: &'a str,
    pool: &'a P,
}

impl<'a, P: Watch + ?Sized> Traced<'a, P> {
    /// Gives the pool a name for the events.
    #[must_use]
    pub fn new(name: &'a str, pool: &'a P) -> Self {
        Self { name, pool }
    }
}

impl<P: Watch + ?Sized> Watch for Traced<'_, P> {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        let (name, pool) = (Arc::from(self.name), self.pool.downgrade());
        Box::new(Weak { name, pool, told: Cell::default() })
    }
}

impl<P: ?Sized> fmt::Debug for Traced<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What finds the pool, with its name.
struct Weak {
    name: Arc<str>,
    pool: Box<dyn WeakPool>,
    /// The wait that the subscriber knows of; zero for none.
    told: Cell<Duration>,
}

impl WeakPool for Weak {
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        self.pool.with(&mut |pool| look(&mut Look { name: &self.name, pool, told: &self.told }))
    }

    fn id(&self) -> Option<(TypeId, usize)> {
        self.pool.id()
    }
}

/// The pool, while a keeper looks at it.
struct Look<'a> {
    name: &'a str,
    pool: &'a mut dyn Trim,
    told: &'a Cell<Duration>,
}

impl Look<'_> {
    /// Trims the pool, and tells how much that was.
    fn told(&mut self, cause: &'static str, trim: impl FnOnce(&mut dyn Trim)) {
        let reserved = |pool: &dyn Trim| pool.stats().map_or(0, |stats| stats.reserved_bytes);
        let before = reserved(self.pool);
        trim(self.pool);
        let reserved_bytes = reserved(self.pool);
        let bytes = before.saturating_sub(reserved_bytes);
        if bytes > 0 {
            // What a subscriber does is no reason to look at this pool no more.
            let _told = catch_user_panic(|| {
                debug!(target: TARGET, pool = self.name, bytes, reserved_bytes, cause, "a keeper trimmed");
            });
        }
        self.tell_wait(reserved_bytes);
    }

    /// Tells how long the first request has been waiting, if that is long, and twice as long as the
    /// subscriber knows.
    fn tell_wait(&self, reserved_bytes: usize) {
        let wait = self.pool.stalled().unwrap_or_default();
        if wait < self.told.get() {
            // That of another request.
            self.told.set(Duration::ZERO);
        }
        if wait < STALLED.max(self.told.get().saturating_mul(2)) {
            return;
        }
        self.told.set(wait);
        let (pool, seconds) = (self.name, wait.as_secs());
        let _told = catch_user_panic(|| {
            warn!(target: TARGET, pool, seconds, reserved_bytes, "the first waiting request was not served");
        });
    }
}

impl Trim for Look<'_> {
    fn trim(&mut self) {
        self.told("pressure", |pool| pool.trim());
    }

    fn trim_idle(&mut self, age: Duration) {
        self.told("idle", |pool| pool.trim_idle(age));
    }

    fn stats(&self) -> Option<PoolStats> {
        self.pool.stats()
    }

    fn uses(&self) -> usize {
        self.pool.uses()
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        self.pool.wake_when_grown(waker)
    }

    fn stalled(&self) -> Option<Duration> {
        self.pool.stalled()
    }
}
