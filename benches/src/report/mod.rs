//! The report: terminal, Markdown, charts, one page.

pub mod chart;
pub mod html;
pub mod markdown;
pub mod table;
pub mod view;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::drawing::number;
use crate::harness::Kind;
use crate::harness::record::{Outcome, Record, Results};

/// Writes all files of the report but `results.json`.
///
/// # Errors
///
/// When one cannot be written.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let charts = chart::all(results);
    for chart in &charts {
        put(&format!("{}.svg", chart.name), &chart.standalone())?;
    }
    put("report.md", &markdown::report(results, &charts))?;
    put("index.html", &html::page(results, &charts))
}

/// What is measured besides time.
struct Measure {
    title: &'static str,
    show: fn(&Record) -> Option<String>,
}

const MEASURES: &[Measure] = &[
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
        show: |record| {
            record.fallbacks.filter(|&share| share > 0.0).map(|share| format!("{:.1} %", share * 100.0))
        },
    },
    Measure { title: "peak resident memory, growth", show: |record| record.peak_bytes.map(number::memory) },
];

/// How it was measured, in short.
const METHOD: &str = "Each row runs in processes of its own. Every contestant first proves that it keeps the bytes of several \
live buffers apart; then all take turns, a few milliseconds each, in an order that rotates from round to round. Times are the \
median over the rounds of several processes; ratios are formed of medians of the same rounds, since times on a shared machine mean little by \
themselves. Building pools is not timed. Heap calls, fallbacks and memory come from separate processes that time nothing. \
`floor` keeps no books at all: what the workload costs by itself. The rest is in `docs/benchmarking.md`.";

/// What a workload does, in a sentence.
fn about(workload: &str) -> &'static str {
    match workload {
        "reuse" => "Acquire a buffer, write its first byte, drop it. One operation is all of that.",
        "live" => {
            "As `reuse`, while others are held: the cost must not grow with the number of live buffers. One operation is one \
             buffer that comes and goes."
        }
        "two-pools" => {
            "As `reuse`, from two pools in turn, and from one of them alone for comparison: what is cached for one pool must not \
             go when another is used. One operation is one buffer."
        }
        "burst" => {
            "Acquire N buffers, write the first byte of each, drop them oldest first, newest first, or at random. One \
             operation is one buffer."
        }
        "mixed" => "Requests of 64 B to 64 KiB, the newest eight held. One operation is one buffer.",
        "ring-fixed" => {
            "RingAl's first table: the newest N buffers are held, each filled to a random part of its size. One operation is one \
             buffer that comes and the oldest that goes."
        }
        "ring-extend" => {
            "RingAl's second table: as `ring-fixed`, with buffers that grow in steps to their length, which nobody knows \
             beforehand, and are then finished."
        }
        "chaos" => {
            "bufpool's benchmark: a hundred tasks, each with one buffer after the other, of sizes around 10 B or 2 KiB and with \
             random lifetimes; by one thread in turn, or on several threads. One operation is one buffer."
        }
        "frame" => {
            "Stratum V2's benchmarks: frames of 4 to 16 KiB written in steps of ten bytes, two at a time, then dropped here, \
             sent to a thread that drops them, or sent and waited for. One operation is one frame."
        }
        "handoff" => {
            "One thread acquires and fills, another reads, sums and drops. One operation is one buffer."
        }
        "threads" => {
            "Several threads acquire, write a byte in each page, drop. One operation is what one thread does, so a level line \
             is perfect scaling, up to the number of cores."
        }
        "stream" => {
            "Write a message into a ring of 64 KiB and read it, by one thread; lengths fixed or random up to 4 KiB, and with bytes \
             left in the ring all the time; `constant` is a length that the compiler knows. `vec` is a `VecDeque`, `floor` two plain copies through the same memory. One operation \
             is a write and its read."
        }
        "parse" => {
            "Records with their length in front come in chunks of 4 KiB, and are summed each as a whole: in place where the ring lends it in \
             one piece (`mirror`, and the two peers that map twice), else copied out first. One operation is a record."
        }
        "spsc" => {
            "Bytes from one thread to another through a ring of 256 KiB, in chunks that are copied in and out. `pipe` is the operating \
             system's. Who cannot wait is asked again until there is something to do. One operation is a chunk."
        }
        "messages" => {
            "Messages through one queue of 64 KiB, from some threads to others, each copied in and copied out; lengths fixed or random \
             up to 4 KiB. `toy-queue` is the queue of the \"black magic\" article's kind, a ring behind one lock; `vec` a `VecDeque` of \
             vectors behind one lock. One operation is one message."
        }
        "file" => "Read a large file in chunks and sum the bytes. One operation is one chunk.",
        "replay" => {
            "The requests of a recorded program, in their order, by one thread. One operation is one buffer."
        }
        _ => "",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Strategy => "strategy",
        Kind::Setting => "setting",
        Kind::Control => "control",
        Kind::Peer => "peer",
    }
}

/// The machine, the build and the settings, by name.
fn facts(results: &Results) -> Vec<(&'static str, String)> {
    let host = &results.host;
    let mut facts = vec![
        ("processor", format!("{}, {} cores", host.cpu, host.cores)),
        ("memory", number::memory(host.memory_bytes)),
        ("governor", host.governor.clone().unwrap_or_else(|| "not readable".into())),
        ("kernel", host.kernel.clone()),
        ("compiler", host.rustc.clone()),
        ("commit", host.commit.clone()),
        ("date", host.date.clone()),
    ];
    if let Some(load) = host.load {
        facts.push(("load before", format!("{load:.2}")));
    }
    let settings = &results.settings;
    facts.push((
        "settings",
        format!(
            "{}: {} processes a row, each of up to {} rounds of {} ms; {} single operations for the tails; {:.0} s in all",
            settings.scale, settings.layouts, settings.rounds, settings.run_ms, settings.samples, results.seconds
        ),
    ));
    facts
}

/// Cells without times, those with the same reason together: contestant, outcome, rows.
fn reasons(results: &Results) -> Vec<(&str, &Outcome, Vec<&str>)> {
    let mut lines: Vec<(&str, &Outcome, Vec<&str>)> = Vec::new();
    for record in &results.cells {
        if matches!(record.outcome, Outcome::Timed(_) | Outcome::Checked) {
            continue;
        }
        let known = lines
            .iter_mut()
            .find(|(name, outcome, _)| *name == record.contestant && **outcome == record.outcome);
        match known {
            Some((_, _, cases)) => cases.push(&record.case),
            None => lines.push((&record.contestant, &record.outcome, vec![&record.case])),
        }
    }
    lines.sort_by_key(|(_, outcome, _)| matches!(outcome, Outcome::Unsupported { .. }));
    lines
}
