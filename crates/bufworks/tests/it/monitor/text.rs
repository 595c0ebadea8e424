//! The text for Prometheus, read back by a strict reader.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bufworks::any::AnyBuilder;
use bufworks::monitor::Monitor;
use bufworks::shard::ShardPool;
use bufworks::slot::SlotPool;
use bufworks::{NoFallback, PoolStats, Watch};
use testkit::process;

use super::{Says, numbers, parse};

/// Which number each series has, as `numbers(0)` tells them apart.
const SERIES: &[(&str, u64, bool)] = &[
    ("memory_pool_committed_bytes", 9, false),
    ("memory_pool_pooled_bytes", 10, false),
    ("memory_pool_pinned_bytes", 11, false),
    ("memory_pool_used_bytes", 6, true),
    ("memory_pool_used_buffers", 5, true),
    ("memory_pool_max_used_bytes", 8, true),
    ("memory_pool_max_used_buffers", 7, true),
    ("memory_pool_rented_buffers_total", 1, true),
    ("memory_pool_allocated_buffers_total", 2, true),
    ("memory_pool_fallback_buffers_total", 3, true),
    ("memory_pool_exhausted_requests_total", 4, true),
    ("memory_pool_stalled_seconds", 12, false),
];

#[test]
fn each_number_has_its_series() {
    let (monitor, pool) = (Monitor::new(), Arc::new(Says::new(numbers(0))));
    assert_eq!(monitor.prometheus(), "", "no pools");
    monitor.watch("one", &pool);
    let series = parse(&monitor.prometheus());
    let known = SERIES.iter().filter(|(_, _, is_counted)| PoolStats::ARE_COUNTED || !is_counted);
    for (name, number, _) in known.clone() {
        assert_eq!(series[*name].values["one"], *number, "{name}");
    }
    assert_eq!(series.len(), known.count(), "what nobody counts is not there");
}

/// The table in the documentation has the names and kinds of the text.
#[test]
fn the_documentation_lists_them() {
    let table = include_str!("../../../src/monitor/mod.rs");
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | `memory_pool_"));
    let rows: Vec<_> = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).collect();
    let names: Vec<_> = rows.iter().map(|row| format!("memory_pool_{}", row[0].trim_matches('`'))).collect();
    assert_eq!(names, SERIES.iter().map(|(name, _, _)| *name).collect::<Vec<_>>());
    for (row, (name, _, is_counted)) in rows.iter().zip(SERIES) {
        assert_eq!(row[1], if name.ends_with("_total") { "counter" } else { "gauge" }, "{name}");
        assert_eq!(row[3] == "absent", *is_counted, "{name}");
    }
}

#[test]
fn pools_of_every_strategy() {
    for name in AnyBuilder::NAMES {
        let pool = Arc::new(Mutex::new(crate::any::built(name)));
        let monitor = Monitor::new();
        monitor.watch(name, &pool);
        let kept = pool.lock().unwrap().acquire(1500).expect("there is room");
        drop(pool.lock().unwrap().acquire(1500));
        let series = parse(&monitor.prometheus());
        let stats = pool.lock().unwrap().stats();
        let value = |series_name: &str| series[series_name].values[*name];
        assert_eq!(value("memory_pool_committed_bytes"), stats.reserved_bytes as u64, "{name}");
        assert_eq!(value("memory_pool_pooled_bytes"), stats.idle_bytes as u64, "{name}");
        if PoolStats::ARE_COUNTED {
            assert_eq!(value("memory_pool_rented_buffers_total"), 2, "{name}");
            assert_eq!(value("memory_pool_used_bytes"), stats.in_use_bytes as u64, "{name}");
            assert!(stats.in_use_bytes >= 1500, "{name}");
        } else {
            assert!(!series.contains_key("memory_pool_rented_buffers_total"));
        }
        drop(kept);
    }
}

#[test]
fn refusals_and_fallbacks() {
    let small = || SlotPool::builder().capacity(4096).slots(2);
    let refuses = Arc::new(Mutex::new(small().build_with(NoFallback).expect("settings are right")));
    let falls_back = Arc::new(Mutex::new(small().build().expect("settings are right")));
    let monitor = Monitor::new();
    monitor.watch("refuses", &refuses);
    monitor.watch("falls back", &falls_back);
    let held = (refuses.lock().unwrap().acquire(4000), falls_back.lock().unwrap().acquire(4000));
    refuses.lock().unwrap().acquire(4000).expect_err("there is no room");
    drop(falls_back.lock().unwrap().acquire(4000).expect("the heap has room"));
    let series = parse(&monitor.prometheus());
    if PoolStats::ARE_COUNTED {
        let value = |name: &str, pool: &str| series[name].values[pool];
        assert_eq!(value("memory_pool_exhausted_requests_total", "refuses"), 1);
        assert_eq!(value("memory_pool_exhausted_requests_total", "falls back"), 0);
        assert_eq!(value("memory_pool_fallback_buffers_total", "refuses"), 0);
        assert_eq!(value("memory_pool_fallback_buffers_total", "falls back"), 1);
    }
    assert_eq!(series["memory_pool_committed_bytes"].kind, "gauge");
    drop(held);
}

/// A pool that only uses its free pages again still counts each buffer as allocated: the help says
/// so.
#[test]
fn free_pages_count_as_allocated() {
    let pool = ShardPool::builder().largest_pooled(1 << 20).build().expect("settings are right");
    let monitor = Monitor::new();
    monitor.watch("blocks", &pool);
    drop(pool.acquire(8 << 20).expect("there is no limit"));
    let held = pool.stats().reserved_bytes;
    drop(pool.acquire(8 << 20).expect("there is no limit"));
    assert_eq!(pool.stats().reserved_bytes, held);
    let text = monitor.prometheus();
    if PoolStats::ARE_COUNTED {
        assert_eq!(parse(&text)["memory_pool_allocated_buffers_total"].values["blocks"], 2);
        let help = text.lines().find(|line| line.starts_with("# HELP memory_pool_allocated_buffers_total "));
        assert!(help.expect("it has a help").contains("free pages"), "{text}");
    }
}

#[test]
fn names_that_need_escaping() {
    let names = [
        "",
        "plain",
        "\\",
        "\"",
        "\n",
        "a\\nb",
        "a\\\nb\"} 1\n# TYPE x counter",
        "\"\"\\\\",
        "é\u{0}\r\t{pool=\"x\"}",
        "日本\\",
    ];
    let monitor = Monitor::new();
    let pools: Vec<_> = (0..names.len()).map(|n| Arc::new(Says::new(numbers(100 * n)))).collect();
    for (name, pool) in names.iter().zip(&pools) {
        monitor.watch(name, pool);
    }
    let series = parse(&monitor.prometheus());
    for (n, name) in names.iter().enumerate() {
        assert_eq!(series["memory_pool_committed_bytes"].values[*name], 100 * n as u64 + 9, "{name:?}");
    }
    assert_eq!(series["memory_pool_committed_bytes"].values.len(), names.len());
}

/// A name goes with the last pool that has it. When it comes back, its counters go on.
#[test]
fn pools_that_end() {
    let monitor = Monitor::new();
    let (one, other) = (Arc::new(Says::new(numbers(0))), Arc::new(Says::new(numbers(1000))));
    monitor.watch("packets", &one);
    monitor.watch("packets", &other);
    let read = || monitor.read().first().map(|reading| (reading.pools, reading.stats));
    let (pools, stats) = read().expect("it is there");
    assert_eq!((pools, stats.acquired, stats.reserved_bytes), (2, 1 + 1001, 9 + 1009));
    drop(one);
    let (pools, stats) = read().expect("one is left");
    assert_eq!((pools, stats.acquired, stats.reserved_bytes), (1, 1 + 1001, 1009));
    drop(other);
    assert_eq!((read(), &*monitor.prometheus()), (None, ""));
    let third = Arc::new(Says::new(numbers(0)));
    monitor.watch("packets", &third);
    let (pools, stats) = read().expect("it is back");
    assert_eq!((pools, stats.acquired, stats.exhausted), (1, 1 + 1001 + 1, 4 + 1004 + 4));
    assert_eq!((stats.reserved_bytes, stats.high_water), (9, 7));
}

/// While another thread has the pool, the numbers are those of the last time.
#[test]
fn pools_that_are_busy() {
    let pool = Arc::new(Mutex::new(SlotPool::new(64 << 10, 8).expect("settings are right")));
    let monitor = Monitor::new();
    monitor.watch("frames", &pool);
    let locked = pool.lock().unwrap();
    assert!(monitor.read().is_empty(), "it has never said anything");
    drop(locked);
    let before = monitor.prometheus();
    assert!(!before.is_empty());
    let _locked = pool.lock().unwrap();
    assert_eq!(monitor.prometheus(), before);
}

#[test]
fn a_published_pool() {
    let (monitor, mut pool) = (Monitor::new(), SlotPool::new(64 << 10, 8).expect("settings are right"));
    let published = monitor.publish("frames");
    let _kept = pool.acquire(1500).expect("there is room");
    published.set(pool.stats());
    let readings = monitor.read();
    assert_eq!((readings.len(), readings[0].stats), (1, pool.stats()));
    drop(published);
    assert!(monitor.read().is_empty());
}

/// What a scrape costs for each pool stays the same, however many pools there are (T26). The pools
/// here say their numbers at once, so that only the monitor is measured.
#[test]
fn a_scrape_costs_the_same_for_each_pool() {
    /// How many times as much it may be where names and numbers are in no near cache of the
    /// processor. A scrape that looks at all pools for each would be 256 times.
    const MOST: u32 = 12;

    let says = |count: usize| {
        let pools: Vec<_> = (0..count).map(|n| Arc::new(Says::new(numbers(n)))).collect();
        each(&pools, &|pool| pool.stats.lock().unwrap().reserved_bytes)
    };
    let (few, many) = (says(64), says(16_384));
    for (few, many) in few.into_iter().zip(many) {
        assert!(
            many <= few.max(Duration::from_nanos(20)) * MOST,
            "{few:?} for each of 64 pools, {many:?} for each of 16384"
        );
    }
}

/// Prints what readings cost:
/// `cargo test --release --package bufworks --all-features --test it -- --nocapture
/// what_a_scrape_costs`. A pool that was not looked at for long is in no cache of the processor, so
/// many pools cost more than few.
#[test]
fn what_a_scrape_costs() {
    for count in [1, 64, 1024] {
        let pools: Vec<_> = (0..count).map(|_| ShardPool::new().expect("settings are right")).collect();
        for pool in &pools {
            drop(pool.acquire(1500).expect("there is room"));
        }
        let took = each(&pools, &|pool| pool.stats().reserved_bytes);
        assert!(took.iter().all(|each| *each < Duration::from_millis(1)), "{count} pools: {took:?} for each");
    }
}

/// Prints what each way to look at `pools` takes, and returns what the best of some scrapes took
/// for each pool: what others do to the processor does not count.
fn each<P: Watch>(pools: &[P], stats: &dyn Fn(&P) -> usize) -> Vec<Duration> {
    const READINGS: usize = 9;
    let (monitor, count) = (Monitor::new(), pools.len());
    for (n, pool) in pools.iter().enumerate() {
        monitor.watch(&format!("pool {n}"), pool);
    }
    let time = |what: &str, f: &dyn Fn() -> usize| {
        let mut took: Vec<_> = (0..READINGS)
            .map(|_| {
                let timer = process::ThreadTimer::start();
                std::hint::black_box(f());
                timer.elapsed()
            })
            .collect();
        took.sort_unstable();
        println!("{count} pools, {what}: {:?} (median of {READINGS})", took[READINGS / 2]);
        took[0] / u32::try_from(count).expect("there are fewer")
    };
    #[cfg_attr(not(any(feature = "metrics", feature = "tracing")), expect(unused_mut))]
    let mut each = vec![
        time("stats()", &|| pools.iter().map(stats).sum()),
        time("read", &|| monitor.read().len()),
        time("prometheus", &|| monitor.prometheus().len()),
    ];
    println!("{count} pools: {} bytes of text", monitor.prometheus().len());
    #[cfg(feature = "metrics")]
    {
        let recorder = super::facade::Recorder::default();
        each.push(time("record", &|| {
            metrics::with_local_recorder(&recorder, || monitor.record());
            0
        }));
    }
    #[cfg(feature = "tracing")]
    each.push(time("trace", &|| {
        monitor.trace();
        0
    }));
    each
}
