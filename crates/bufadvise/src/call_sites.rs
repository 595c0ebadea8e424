//! The call sites of a program that requested memory, as a recording of its heap has them.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use buftrace::{Profile, Site};
use comfy_table::{Cell, Table};
use serde::Serialize;

use crate::names::{Frame, Stacks};
use crate::number::{memory, share, time};
use crate::print;

/// Call sites in a table; the JSON has all of them.
const ROWS: usize = 8;
/// Frames of a call site, unless it is said how many.
pub(crate) const FRAMES: NonZeroUsize = NonZeroUsize::new(4).unwrap();
/// What a call site is called that has no stack.
const UNKNOWN: &str = "unknown: no call stack was recorded";

/// A call site: the innermost frames of call stacks, with what was requested from it. Counts and
/// bytes are estimates, unless the recording is exact.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct CallSite {
    #[serde(flatten)]
    pub(crate) site: Site,
    /// The bytes that were out on average, over the whole time.
    pub(crate) mean_bytes_out: f64,
    /// The innermost first.
    pub(crate) frames: Vec<Frame>,
}

impl CallSite {
    /// Returns which share of its requests a count of them is, as a whole number of percent.
    pub(crate) fn of_requests(&self, count: f64) -> String {
        format!("{:.0} %", 100.0 * count / self.site.count.max(1.0))
    }

    /// Returns the mean size of its objects.
    pub(crate) fn mean_bytes(&self) -> u64 {
        (self.site.bytes / self.site.count.max(1.0)) as u64
    }

    /// Returns how long half of its objects lived at most; nothing where all are still out.
    pub(crate) fn median_lifetime(&self) -> Option<String> {
        (self.site.out_at_end < self.site.count).then(|| time(self.site.lifetimes.p50_ns as f64))
    }

    /// Its frames as lines.
    pub(crate) fn lines(&self) -> String {
        if self.frames.is_empty() {
            return UNKNOWN.into();
        }
        let line = |(depth, frame): (usize, &Frame)| {
            let inlined = if frame.inlined { ", inlined" } else { "" };
            let location = print::in_line(&frame.location());
            format!("{}{location}{inlined}", if depth == 0 { "" } else { "< " })
        };
        self.frames.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the call sites, the most bytes first: stacks whose innermost `frames` frames look alike
/// are one.
pub(crate) fn of(heap: &Profile, stacks: &Stacks, frames: NonZeroUsize) -> Vec<CallSite> {
    let mut numbers = HashMap::new();
    let shown = |stack: u32| stacks.frames(stack).iter().take(frames.get());
    let number = |stack| {
        let next = numbers.len();
        *numbers.entry(shown(stack).map(|frame| frame.location()).collect::<Vec<_>>()).or_insert(next)
    };
    let of_stack: Vec<usize> = (0..heap.stacks() as u32).map(number).collect();
    let call_site = |site: Site| CallSite {
        mean_bytes_out: site.byte_seconds * 1e9 / heap.duration_ns().max(1) as f64,
        frames: shown(site.stack).map(|frame| Frame::clone(frame)).collect(),
        site,
    };
    heap.sites_by(|stack| of_stack.get(stack as usize)).into_iter().map(call_site).collect()
}

/// Returns all bytes that were requested, and their sum with the seconds for which they were out.
pub(crate) fn sums(call_sites: &[CallSite]) -> (f64, f64) {
    let sum = |value: fn(&CallSite) -> f64| call_sites.iter().map(value).sum::<f64>().max(f64::MIN_POSITIVE);
    (sum(|one| one.site.bytes), sum(|one| one.site.byte_seconds))
}

/// What comes first in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those that request most.
    Bytes,
    /// Those that hold most.
    Held,
}

/// What the columns mean.
pub(crate) const LEGEND: &str = "\
- of all bytes: the share of all bytes that were requested. The mean size, too, is that of objects at their largest.
- of all held: the share of all bytes times the seconds for which they were out. A leak is high here.
- half live up to: half of the objects that were released lived no longer.
- grown, zeroed: the shares of the objects that were reallocated, and that were requested as zeros.
- call site: functions of the standard library in front of the program's are left out, except the one that was called.";

/// The columns of the table.
const COLUMNS: [&str; 9] = [
    "of all bytes",
    "of all held",
    "requests",
    "mean size",
    "out on average",
    "out at the end",
    "half live up to",
    "grown, zeroed",
    "call site, innermost first",
];

/// Returns the first call sites as a table.
pub(crate) fn table(call_sites: &[CallSite], order: Order) -> Table {
    let mut table = print::table(&COLUMNS);
    let (bytes, held) = sums(call_sites);
    let mut sorted: Vec<&CallSite> = call_sites.iter().collect();
    if order == Order::Held {
        sorted.sort_by(|one, other| other.site.byte_seconds.total_cmp(&one.site.byte_seconds));
    }
    for one in sorted.into_iter().take(ROWS) {
        let site = &one.site;
        let requests = match site.count_error {
            0.0 => format!("{:.0}", site.count),
            error => format!("{:.0} ± {error:.0}", site.count),
        };
        let cells = [
            share(site.bytes / bytes),
            share(site.byte_seconds / held),
            requests,
            memory(one.mean_bytes()),
            memory(one.mean_bytes_out as u64),
            memory(site.out_at_end_bytes as u64),
            one.median_lifetime().unwrap_or_else(|| "–".into()),
            format!("{}, {}", one.of_requests(site.grown), one.of_requests(site.zeroed)),
        ];
        table.add_row(print::figures(cells).chain([Cell::new(one.lines())]));
    }
    table
}
