//! Numbers for the recorder of the crate `metrics`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use bufworks::PoolStats;
use bufworks::monitor::Monitor;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, SharedString, Unit,
    with_local_recorder,
};

use super::{Says, numbers, parse};

/// Keeps the last value of each number.
#[derive(Default)]
pub(super) struct Recorder {
    values: Arc<Mutex<BTreeMap<(String, String), f64>>>,
    described: Mutex<BTreeMap<String, Option<Unit>>>,
    /// Called before a number is set.
    first: Option<Arc<dyn Fn() + Send + Sync>>,
}

struct Cell {
    key: (String, String),
    values: Arc<Mutex<BTreeMap<(String, String), f64>>>,
    first: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Cell {
    fn put(&self, value: f64) {
        if let Some(first) = &self.first {
            first();
        }
        self.values.lock().unwrap().insert(self.key.clone(), value);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.put(value);
    }
}

impl CounterFn for Cell {
    fn increment(&self, _: u64) {
        unreachable!("counters are absolute");
    }

    fn absolute(&self, value: u64) {
        self.put(value as f64);
    }
}

impl Recorder {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> = key.labels().collect();
        assert!(labels.len() == 1 && labels[0].key() == "pool", "{key}");
        let key = (key.name().to_owned(), labels[0].value().to_owned());
        Arc::new(Cell { key, values: Arc::clone(&self.values), first: self.first.clone() })
    }

    fn describe(&self, key: &KeyName, unit: Option<Unit>, text: &SharedString) {
        assert!(text.ends_with('.'));
        self.described.lock().unwrap().insert(key.as_str().to_owned(), unit);
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&key, unit, &text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&key, unit, &text);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        unreachable!("there are none");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        assert!(key.name().ends_with("_total"));
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        assert!(!key.name().ends_with("_total"));
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        unreachable!("there are none");
    }
}

/// It has what the text has, under the same names.
#[test]
fn the_same_as_the_text() {
    let (monitor, recorder) = (Monitor::new(), Recorder::default());
    let pools = [Says::new(numbers(0)), Says::new(numbers(100))].map(Arc::new);
    monitor.watch("one", &pools[0]);
    monitor.watch("other \"", &pools[1]);
    with_local_recorder(&recorder, || monitor.record());
    let mut expected = BTreeMap::new();
    for (name, series) in parse(&monitor.prometheus()) {
        let unit = match name.rsplit('_').next() {
            Some("bytes") => Unit::Bytes,
            Some("seconds") => Unit::Seconds,
            _ => Unit::Count,
        };
        assert_eq!(recorder.described.lock().unwrap()[&name], Some(unit), "{name}");
        for (pool, value) in series.values {
            expected.insert((name.clone(), pool), value as f64);
        }
    }
    assert_eq!(*recorder.values.lock().unwrap(), expected);
}

#[test]
fn pools_that_end() {
    let (monitor, recorder) = (Monitor::new(), Recorder::default());
    let pool = Arc::new(Says::new(numbers(0)));
    monitor.watch("one", &pool);
    let record = || with_local_recorder(&recorder, || monitor.record());
    record();
    drop(pool);
    record();
    for ((name, _), value) in &*recorder.values.lock().unwrap() {
        assert_eq!(*value > 0.0, name.ends_with("_total"), "{name} is {value}");
    }
    assert_eq!(recorder.values.lock().unwrap().len(), if PoolStats::ARE_COUNTED { 12 } else { 4 });
}

#[test]
fn t22_a_recorder_that_panics() {
    let (monitor, pool) = (Monitor::new(), Arc::new(Says::new(numbers(0))));
    monitor.watch("one", &pool);
    let recorder = Recorder { first: Some(Arc::new(|| panic!("on purpose"))), ..Recorder::default() };
    let panicked = catch_unwind(AssertUnwindSafe(|| with_local_recorder(&recorder, || monitor.record())));
    panicked.expect_err("it reaches the caller");
    assert_eq!(monitor.read()[0].stats, numbers(0), "and nothing else");
    let calm = Recorder::default();
    with_local_recorder(&calm, || monitor.record());
    assert!(!calm.values.lock().unwrap().is_empty());
}

/// A recorder that reads the monitor, adds a pool and drops those that are read.
#[test]
fn t23_a_recorder_that_comes_back_in() {
    let (monitor, pool) = (Monitor::new(), Arc::new(Says::new(numbers(0))));
    monitor.watch("one", &pool);
    let held = Mutex::new(Some(pool));
    let first = {
        let monitor = monitor.clone();
        move || {
            drop(held.lock().unwrap().take());
            drop(monitor.read());
            monitor.record(); // there is no other recorder within this one's turn
            drop(monitor.publish("new"));
        }
    };
    let recorder = Recorder::default();
    let outer = Recorder {
        first: Some(Arc::new(move || with_local_recorder(&recorder, &first))),
        ..Recorder::default()
    };
    with_local_recorder(&outer, || monitor.record());
    assert!(!outer.values.lock().unwrap().is_empty(), "what was read is recorded");
    assert!(monitor.read().is_empty(), "the pool has ended");
}
