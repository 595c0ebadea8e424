//! What is measured besides time.

use crate::harness::record::Record;
use bufadvise::number;

/// What is measured besides time.
pub(super) struct Measure {
    /// What the table has.
    pub(super) title: &'static str,
    /// A cell of it, if there is one.
    pub(super) show: fn(&Record) -> Option<String>,
}

pub(super) const MEASURES: &[Measure] = &[
    Measure {
        title: "throughput",
        show: |record| {
            let timing = record.timing()?;
            Some(number::rate(timing.bytes?, timing.median))
        },
    },
    Measure {
        title: "single operations: p50 / p99 / p99.9 in ns, with the clock",
        show: |record| {
            let tail = record.timing()?.tail.as_ref()?;
            Some(format!("{} / {} / {}", tail.p50, tail.p99, tail.p999))
        },
    },
    Measure {
        title: "heap calls per operation",
        show: |record| record.heap_calls.map(|calls| format!("{calls:.2}")),
    },
    Measure {
        title: "fallbacks, share of operations",
        show: |record| record.fallbacks.filter(|&share| share > 0.0).map(number::share),
    },
    Measure { title: "peak resident memory, growth", show: |record| record.peak_bytes.map(number::memory) },
];
