//! Events for the subscriber of the crate `tracing`.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufworks::monitor::{Monitor, Traced};
use bufworks::shard::ShardPool;
use bufworks::{Keeper, MemoryUse, PoolStats, Pressure, PressureSource, Trim, Watch};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber};

use super::{Says, numbers};

/// Keeps the events, each as its level and fields.
#[derive(Clone, Default)]
struct Listener {
    events: Arc<Mutex<Vec<String>>>,
    /// Called before an event is kept.
    first: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Listener {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    fn doing(first: impl Fn() + Send + Sync + 'static) -> Self {
        Self { first: Some(Arc::new(first)), ..Self::default() }
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "bufworks::pool" && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        unreachable!("there are no spans");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if let Some(first) = &self.first {
            first();
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.events.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn what_has_happened() {
    let (monitor, listener) = (Monitor::new(), Listener::default());
    let trace = || {
        with_default(listener.clone(), || monitor.trace());
        listener.take()
    };
    let mut stats = PoolStats::default();
    (stats.reserved_bytes, stats.in_use_bytes) = (1000, 700);
    let pool = Arc::new(Says::new(stats));
    monitor.watch("packets", &pool);
    assert_eq!(trace(), ["DEBUG message=memory was taken pool=\"packets\" bytes=1000 reserved_bytes=1000"]);
    assert!(trace().is_empty(), "nothing happened");
    (stats.exhausted, stats.fallbacks) = (2, 3);
    pool.set(stats);
    drop(monitor.read());
    drop(monitor.prometheus());
    assert_eq!(
        trace(),
        [
            "WARN message=requests were refused pool=\"packets\" requests=2 in_use_bytes=700 reserved_bytes=1000",
            "INFO message=the fallback served pool=\"packets\" buffers=3 in_use_bytes=700 reserved_bytes=1000",
        ],
        "other readers take no events away"
    );
    (stats.exhausted, stats.reserved_bytes) = (1, 400);
    pool.set(stats);
    let given_back = "DEBUG message=memory was given back pool=\"packets\" bytes=600 reserved_bytes=400";
    assert_eq!(trace(), [given_back], "a counter that goes down is no event");
    drop(pool);
    let ended = "DEBUG message=memory was given back pool=\"packets\" bytes=400 reserved_bytes=0";
    assert_eq!(trace(), [ended]);
    assert!(trace().is_empty());
}

#[test]
fn pressure() {
    let (monitor, listener) = (Monitor::new(), Listener::default());
    let trace = |used_bytes| {
        let mut memory = MemoryUse::default();
        (memory.used_bytes, memory.limit_bytes) = (used_bytes, 100);
        let mut pressure = Pressure::default();
        pressure.memory = Some(memory);
        with_default(listener.clone(), || monitor.trace_pressure(&pressure));
        listener.take()
    };
    assert_eq!(trace(10), ["INFO message=memory is not short level=\"low\" memory_percent=10"]);
    assert!(trace(50).is_empty(), "the level is the same");
    assert_eq!(trace(75), ["WARN message=memory is short level=\"medium\" memory_percent=75"]);
    assert_eq!(trace(95), ["WARN message=memory is short level=\"high\" memory_percent=95"]);
    assert!(trace(99).is_empty());
    assert_eq!(trace(1), ["INFO message=memory is not short level=\"low\" memory_percent=1"]);
}

const AGE: Duration = Duration::from_millis(10);

/// Looks until the pool is empty.
fn keep(keeper: &mut Keeper, pool: &ShardPool) {
    let started = Instant::now();
    while pool.stats().reserved_bytes > 0 && started.elapsed() < Duration::from_secs(10) {
        keeper.tick(Instant::now());
        thread::sleep(AGE);
    }
    assert_eq!(pool.stats().reserved_bytes, 0, "the keeper trims it");
}

fn keeper(pool: &ShardPool) -> Keeper {
    Keeper::new().purge_delay(AGE).pressure(PressureSource::none()).watch(&Traced::new("packets", pool))
}

#[test]
fn what_a_keeper_trims() {
    let pool = ShardPool::new().expect("settings are right");
    drop(pool.acquire(100_000).expect("there is room"));
    let reserved = pool.stats().reserved_bytes;
    let (mut keeper, listener) = (keeper(&pool), Listener::default());
    with_default(listener.clone(), || keep(&mut keeper, &pool));
    let expected = format!(
        "DEBUG message=a keeper trimmed pool=\"packets\" bytes={reserved} reserved_bytes=0 cause=\"idle\""
    );
    assert_eq!(listener.take(), [expected]);
    drop(pool);
    thread::sleep(AGE);
    keeper.tick(Instant::now() + AGE * 1000);
    assert_eq!(keeper.watched(), 0, "the pool has ended");
}

/// A pool whose first request has been waiting for so long.
struct Stalls(Mutex<Option<Duration>>);

impl Trim for &Stalls {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        let mut stats = PoolStats::default();
        stats.reserved_bytes = 7;
        Some(stats)
    }

    fn stalled(&self) -> Option<Duration> {
        *self.0.lock().unwrap()
    }
}

/// From five seconds on, and again each time that it has doubled, also in a mutex.
#[test]
fn what_waits_for_long() {
    let pool = Arc::new(Stalls(Mutex::new(None)));
    let weak = Traced::new("packets", &pool).downgrade();
    let listener = Listener::default();
    let look = |seconds: Option<u64>| {
        *pool.0.lock().unwrap() = seconds.map(Duration::from_secs);
        with_default(listener.clone(), || {
            assert!(weak.with(&mut |pool| {
                pool.trim_idle(AGE);
                assert_eq!(pool.stalled(), seconds.map(Duration::from_secs));
            }));
        });
        listener.take()
    };
    let told = |seconds| {
        [format!(
            "WARN message=the first waiting request was not served pool=\"packets\" seconds={seconds} reserved_bytes=7"
        )]
    };
    assert!(look(None).is_empty() && look(Some(4)).is_empty());
    assert_eq!(look(Some(6)), told(6));
    assert!(look(Some(11)).is_empty(), "it is known");
    assert_eq!(look(Some(13)), told(13));
    // Another one.
    assert!(look(Some(1)).is_empty());
    assert_eq!(look(Some(5)), told(5));
    assert!(look(None).is_empty());
    assert_eq!(look(Some(8)), told(8));
}

/// The keeper of a pool with a budget finds the request, through whatever holds the pool.
#[test]
fn a_request_that_waits_is_found_through_every_handle() {
    let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    let _held = pool.acquire(60_000).expect("room");
    let is_found = |pool: &dyn Watch| {
        let mut found = None;
        assert!(pool.downgrade().with(&mut |pool| found = pool.stalled()));
        found.is_some()
    };
    let other = pool.clone();
    let mut waiting = Box::pin(other.acquire_async(60_000));
    let locked = Arc::new(Mutex::new(pool.clone()));
    let found = || [is_found(&pool), is_found(&locked), is_found(&Traced::new("packets", &pool))];
    assert_eq!(found(), [false; 3]);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(found(), [true; 3]);
}

#[test]
fn t22_a_subscriber_that_panics() {
    let pool = ShardPool::new().expect("settings are right");
    let mut keeper = keeper(&pool);
    let listener = Listener::doing(|| panic!("on purpose"));
    with_default(listener.clone(), || {
        for _ in 0..2 {
            drop(pool.acquire(100_000).expect("there is room"));
            keep(&mut keeper, &pool);
            assert_eq!(keeper.watched(), 1, "the keeper continues with it");
        }
        let monitor = Monitor::new();
        let says = Arc::new(Says::new(numbers(0)));
        monitor.watch("packets", &says);
        catch_unwind(AssertUnwindSafe(|| monitor.trace())).expect_err("it reaches the caller");
        assert_eq!(monitor.read()[0].stats, numbers(0), "and nothing else");
        monitor.trace();
    });
}

/// A subscriber that uses the pool and the monitor and ends the pool, while a keeper or a monitor
/// tells it something.
#[test]
fn t23_a_subscriber_that_comes_back_in() {
    for by_keeper in [false, true] {
        let pool = ShardPool::new().expect("settings are right");
        let (monitor, mut keeper) = (Monitor::new(), keeper(&pool));
        monitor.watch("packets", &pool);
        drop(pool.acquire(100_000).expect("there is room"));
        let held = Arc::new(Mutex::new(Some(pool)));
        let listener = {
            let (held, monitor) = (Arc::clone(&held), monitor.clone());
            Listener::doing(move || {
                let pool = held.lock().unwrap().take();
                if let Some(pool) = &pool {
                    drop(pool.acquire(5000).expect("there is room"));
                    pool.trim();
                }
                drop(monitor.read());
                drop(pool);
            })
        };
        with_default(listener.clone(), || {
            let started = Instant::now();
            while held.lock().unwrap().is_some() && started.elapsed() < Duration::from_secs(10) {
                if by_keeper {
                    keeper.tick(Instant::now());
                    thread::sleep(AGE);
                } else {
                    monitor.trace();
                }
            }
            assert!(held.lock().unwrap().is_none(), "it was told");
            keeper.tick(Instant::now() + AGE * 1000);
        });
        assert_eq!((keeper.watched(), monitor.read().len()), (0, 0), "the pool has ended");
        assert!(!listener.take().is_empty());
    }
}
