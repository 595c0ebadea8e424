//! Pools whose code lies, panics, comes back in, and ends pools and the monitor.

use std::collections::BTreeMap;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use bufworks::monitor::Monitor;
use bufworks::shard::ShardPool;
use bufworks::{PoolStats, Trim, Watch, WeakPool};
use fastrand::Rng;

use super::{Says, numbers, parse};

/// Any numbers at all, the largest among them.
fn any_numbers(rng: &mut Rng) -> PoolStats {
    let number = |rng: &mut Rng| match rng.u8(..4) {
        0 => 0,
        1 => usize::MAX,
        2 => rng.usize(..100),
        _ => rng.usize(..),
    };
    let mut stats = PoolStats::default();
    for counter in
        [&mut stats.acquired, &mut stats.reused, &mut stats.fresh, &mut stats.fallbacks, &mut stats.exhausted]
    {
        *counter = number(rng) as u64;
    }
    for gauge in [
        &mut stats.in_use,
        &mut stats.in_use_bytes,
        &mut stats.high_water,
        &mut stats.high_water_bytes,
        &mut stats.reserved_bytes,
        &mut stats.idle_bytes,
        &mut stats.pinned_bytes,
    ] {
        *gauge = number(rng);
    }
    stats
}

/// Whatever pools say, and whichever of them end: counters never go down, as long as the name is
/// there and after that.
#[test]
fn pools_that_lie() {
    let mut rng = Rng::with_seed(7);
    for _ in 0..20 {
        let monitor = Monitor::new();
        let mut pools: Vec<Arc<Says>> = Vec::new();
        let mut seen = BTreeMap::new();
        for _ in 0..50 {
            match rng.u8(..4) {
                0 => {
                    let pool = Arc::new(Says::new(any_numbers(&mut rng)));
                    monitor.watch(if rng.bool() { "a" } else { "b" }, &pool);
                    pools.push(pool);
                }
                1 if !pools.is_empty() => drop(pools.swap_remove(rng.usize(..pools.len()))),
                _ => pools.iter().for_each(|pool| pool.set(any_numbers(&mut rng))),
            }
            for (name, series) in parse(&monitor.prometheus()) {
                for (pool, value) in series.values.into_iter().filter(|_| series.kind == "counter") {
                    let before = seen.insert((name.clone(), pool), value).unwrap_or(0);
                    assert!(value >= before, "{name} goes from {before} to {value}");
                }
            }
        }
    }
}

/// A pool that has ended, and whose weak handle panics when it is dropped.
struct PanicsWhenDropped(Arc<AtomicUsize>);

struct Weak(Arc<AtomicUsize>);

impl WeakPool for Weak {
    fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        false
    }
}

impl Watch for PanicsWhenDropped {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(Weak(Arc::clone(&self.0)))
    }
}

impl Drop for Weak {
    fn drop(&mut self) {
        // ORDER: Relaxed: a count, which is read by the same thread, or after a join.
        self.0.fetch_add(1, Ordering::Relaxed);
        // The payload of its panic panics likewise.
        panic::panic_any(Self(Arc::clone(&self.0)));
    }
}

#[test]
fn t22_pools_that_panic() {
    let (monitor, calm) = (Monitor::new(), Arc::new(Says::new(numbers(0))));
    let panics = Arc::new(Says::after(numbers(0), || panic!("on purpose")));
    let drops = Arc::new(AtomicUsize::new(0));
    monitor.watch("panics", &panics);
    monitor.watch("calm", &calm);
    let watched = PanicsWhenDropped(Arc::clone(&drops));
    monitor.watch("panics when it goes", &watched);
    let names = || monitor.read().iter().map(|reading| reading.name.to_string()).collect::<Vec<_>>();
    // ORDER: Relaxed, as where it is counted.
    let drops = || drops.load(Ordering::Relaxed);
    assert_eq!(names(), ["calm"]);
    assert_eq!(drops(), 2, "it was dropped, and what it panicked with");
    assert_eq!(names(), ["calm"]);
    assert_eq!(Arc::strong_count(&panics), 1, "no handle is left behind");
    // With the monitor, and while the thread unwinds.
    monitor.watch("again", &watched);
    let ended = thread::spawn(move || {
        let _monitor = monitor;
        panic!("on purpose");
    });
    ended.join().expect_err("it panicked");
    assert_eq!(drops(), 4, "it was dropped, and what it panicked with");
}

/// A pool that reads the monitor, adds pools, drops handles of it and of itself, while it is read.
#[test]
fn t23_pools_that_come_back_in() {
    let monitor = Monitor::new();
    let own = Arc::new(OnceLock::new());
    let held = Arc::new(Mutex::new(None));
    let added = Arc::new(Mutex::new(Vec::new()));
    let pool = {
        let (monitor, own, held, added) =
            (monitor.clone(), Arc::clone(&own), Arc::clone(&held), Arc::clone(&added));
        Arc::new(Says::after(numbers(0), move || {
            for reading in monitor.read() {
                assert!(reading.stats.acquired < 100, "{reading:?}");
            }
            parse(&monitor.prometheus());
            let new = Arc::new(Says::new(numbers(0)));
            monitor.watch("new", &new);
            added.lock().unwrap().push(new);
            drop(monitor.clone());
            // The last handle, except that of the look.
            let last: Option<Arc<Says>> = held.lock().unwrap().take();
            drop(last);
            assert!(own.get().is_some_and(|own: &std::sync::Weak<Says>| own.strong_count() > 0));
        }))
    };
    own.set(Arc::downgrade(&pool)).expect("it is set once");
    monitor.watch("comes back", &pool);
    for _ in 0..3 {
        assert!(monitor.read().iter().any(|reading| &*reading.name == "comes back"));
    }
    *held.lock().unwrap() = Some(pool);
    assert!(monitor.read().iter().any(|reading| &*reading.name == "comes back"), "the look had it");
    let readings = monitor.read();
    assert_eq!((readings.len(), readings[0].pools), (1, 4), "it has ended, and what it added is there");
}

/// Several threads read, while others make pools, use them and end them.
#[test]
fn threads_at_once() {
    let monitor = Monitor::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..100 {
                    let pool = ShardPool::new().expect("settings are right");
                    monitor.watch(if n % 2 == 0 { "even" } else { "odd" }, &pool);
                    drop((pool.acquire(100), pool.acquire(5000)));
                    drop(monitor.read());
                }
            });
            scope.spawn(|| {
                let mut seen = BTreeMap::new();
                for _ in 0..100 {
                    for reading in monitor.read() {
                        let before = seen.insert(reading.name, reading.stats.acquired).unwrap_or(0);
                        assert!(reading.stats.acquired >= before);
                    }
                }
            });
        }
    });
    assert!(monitor.read().is_empty(), "all have ended");
}
