//! A keeper over a pool that threads share: tests tick it themselves, or wait for what its thread
//! does.

use std::panic::RefUnwindSafe;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Wake;
use std::thread;
use std::time::{Duration, Instant};

use bufcore::{BufferPool, PoolStats};
#[cfg(unix)]
use bufkeeper::Watch;
use bufkeeper::{Keeper, PressureSource, Trim};

#[cfg(unix)]
use crate::sandbox::{Ended, forked};

const MIB: usize = 1 << 20;
/// The shortest that a keeper takes.
pub const AGE: Duration = Duration::from_millis(10);
/// No keeper takes so long.
const LONG: Duration = Duration::from_secs(30);

/// Makes a keeper without the pressure of the system that the tests run on.
pub fn keeper() -> Keeper {
    Keeper::new().purge_delay(AGE).pressure(PressureSource::none())
}

/// What a keeper watches for its own sake: it has no memory.
#[derive(Debug)]
pub struct Nothing;

impl Trim for &Nothing {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        Some(PoolStats::default())
    }
}

/// Acquires and drops as many buffers at once.
pub fn burst<P: BufferPool>(mut pool: P, count: usize, bytes: usize) {
    drop((0..count).map(|_| pool.acquire(bytes).expect("room")).collect::<Vec<_>>());
}

/// Waits for the age, and looks.
pub fn look(keeper: &mut Keeper) {
    thread::sleep(AGE);
    let now = Instant::now();
    assert!(keeper.tick(now) > now);
}

/// Waits until `is_so`, and fails when that takes too long.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONG, "{what}");
        thread::sleep(AGE / 5);
    }
}

/// Checks that the pool is complete when a waker is called, as it takes memory: that may use the
/// pool, or panic, which ends there. The caller then looks whether memory was lost.
pub fn wakers_are_users_code<P>(pool: &P)
where
    P: Trim + Clone + Send + Sync + RefUnwindSafe + 'static,
    for<'a> &'a P: BufferPool,
{
    struct Hostile<P> {
        pool: P,
        calls: AtomicUsize,
    }
    impl<P: Trim + Clone + Send + Sync + 'static> Wake for Hostile<P>
    where
        for<'a> &'a P: BufferPool,
    {
        fn wake(self: Arc<Self>) {
            // ORDER: Relaxed: the caller's thread.
            self.calls.fetch_add(1, Relaxed);
            self.pool.clone().trim();
            burst(&self.pool, 1, 1500);
            panic!("on purpose");
        }
    }
    let acquire = |mut pool: &P| pool.acquire(MIB).map(|buf| buf.capacity());
    let hostile = Arc::new(Hostile { pool: pool.clone(), calls: AtomicUsize::new(0) });
    assert!(pool.wake_when_grown(&Arc::clone(&hostile).into()));
    assert_eq!(acquire(pool), Ok(MIB));
    // ORDER: Relaxed, as above.
    assert_eq!(hostile.calls.load(Relaxed), 1);
    assert_eq!(acquire(pool), Ok(MIB));
}

/// Checks that a forked child, which uses no pool, ends as a program does, with the destructors of
/// its thread: whatever other threads had locked. The test runs alone in its process.
#[cfg(unix)]
pub fn t25_forked_children_exit<P>(pool: &P)
where
    P: Trim + Clone + Send + Sync + Watch,
    for<'a> &'a P: BufferPool,
{
    const CHILDREN: usize = 1000;
    // On a slow machine there are fewer.
    let started = Instant::now();
    let is_over = AtomicBool::new(false);
    let keeper = keeper().watch(pool).spawn().expect("there is a thread");
    let hung = thread::scope(|scope| {
        for number in 1..3_usize {
            let (mut theirs, is_over) = (pool.clone(), &is_over);
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    burst(&theirs, 20 * number, 30_000 * number);
                    theirs.trim_idle(Duration::ZERO);
                }
            });
        }
        let mut hung = 0;
        for _ in 0..CHILDREN {
            burst(pool, 3, 300_000);
            // SAFETY: ends this process as a program does that returns from `main`.
            let ended = forked(LONG / 2, || unsafe { libc::exit(3) });
            hung += usize::from(ended != Ended::With(3));
            if hung > 0 || started.elapsed() > LONG {
                break;
            }
        }
        is_over.store(true, Relaxed);
        hung
    });
    assert_eq!(hung, 0, "a child does not end");
    let ended = forked(LONG / 2, || {
        drop(keeper);
        3
    });
    assert_eq!(ended, Ended::With(3));
}
