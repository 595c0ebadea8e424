//! The numbers of the heap of large blocks, in a program that has it.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bufworks::bufalloc::{self, Large, PageStats, Upkeep};
use bufworks::monitor::Monitor;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Nobody but the test has blocks of the heap, or gives pages back.
#[global_allocator]
static ALLOC: Large = Large::new().threshold(1 << 20).upkeep(Upkeep::Ticks);

/// What a monitor shows of these.
fn expected(stats: &PageStats) -> BTreeMap<String, u64> {
    [
        ("memory_large_resident_bytes", stats.resident_bytes),
        ("memory_large_dirty_bytes", stats.dirty_bytes),
        ("memory_large_max_resident_bytes", stats.most_resident_bytes),
        ("memory_large_mapped_bytes", stats.address_bytes),
        ("memory_large_faulted_bytes_total", stats.faulted_bytes),
        ("memory_large_returned_bytes_total", stats.returned_bytes),
        ("memory_large_moved_bytes_total", stats.moved_bytes),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes as u64))
    .into()
}

/// The numbers of a text, each of which is of the kind that its name says.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let mut kind = "";
    let mut numbers = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            kind = rest.rsplit(' ').next().unwrap();
            continue;
        }
        let (name, number) = line.split_once(' ').unwrap();
        assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        assert!(numbers.insert(name.to_owned(), number.parse().unwrap()).is_none(), "{line}");
    }
    numbers
}

/// Keeps the numbers, of gauges as the bits of an `f64`.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        assert_eq!(key.labels().len(), 0, "{key}");
        Arc::clone(self.0.lock().unwrap().entry(key.name().to_owned()).or_default())
    }

    fn numbers(&self) -> BTreeMap<String, u64> {
        let number = |(name, cell): (&String, &Arc<AtomicU64>)| {
            let bits = cell.load(Relaxed);
            let number = if name.ends_with("_total") { bits } else { f64::from_bits(bits) as u64 };
            (name.clone(), number)
        };
        self.0.lock().unwrap().iter().map(number).collect()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        unreachable!("there are none")
    }
}

#[test]
fn a_monitor_shows_the_heap() {
    let monitor = Monitor::new();
    let kept = Kept::default();
    let record = || metrics::with_local_recorder(&kept, || monitor.record());
    record();
    assert_eq!((monitor.prometheus(), kept.numbers().len()), (String::new(), 0), "there is no heap");
    let block = vec![1_u8; 4 << 20];
    drop(vec![1_u8; 2 << 20]);
    let stats = bufalloc::stats();
    if stats == PageStats::default() {
        // No addresses are reserved.
        return;
    }
    assert!(stats.dirty_bytes >= 2 << 20 && stats.resident_bytes >= 6 << 20, "{stats:?}");
    record();
    for shown in [parse(&monitor.prometheus()), kept.numbers()] {
        assert_eq!(shown, expected(&stats));
    }
    bufalloc::trim();
    assert_ne!(bufalloc::stats(), stats);
    record();
    for shown in [parse(&monitor.prometheus()), kept.numbers()] {
        assert_eq!(shown, expected(&bufalloc::stats()));
    }
    drop(block);
}
