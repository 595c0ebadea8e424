//! The places of a program that requested memory, as a recording of its heap has them.

use std::collections::HashMap;
use std::rc::Rc;

use buftrace::{Profile, Site};
use comfy_table::{Cell, Table};
use serde::{Deserialize, Serialize};

use crate::drawing::number::{memory, share, time};
use crate::names::{Frame, Stacks};
use crate::print;

/// Places in a table; the JSON has all of them.
const ROWS: usize = 8;
/// Frames of a place, unless it is said how many.
pub(crate) const FRAMES: usize = 4;
/// What a place is called that has no stack.
const UNKNOWN: &str = "unknown: no call stack was recorded";

/// A place: the innermost frames of call stacks, with what was requested from it. Counts and bytes
/// are estimates, unless the recording is exact.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    /// As in [`Joined`].
    #[serde(skip)]
    pub(crate) number: usize,
    pub(crate) samples: usize,
    pub(crate) requests: f64,
    pub(crate) requests_error: f64,
    pub(crate) bytes: f64,
    pub(crate) bytes_error: f64,
    pub(crate) largest: u64,
    pub(crate) zeroed: f64,
    pub(crate) grown: f64,
    pub(crate) reallocations: f64,
    pub(crate) released_on_another_thread: f64,
    pub(crate) out_at_end: f64,
    pub(crate) out_at_end_bytes: f64,
    pub(crate) byte_seconds: f64,
    /// The bytes that were out on average, over the whole time.
    pub(crate) mean_bytes_out: f64,
    pub(crate) median_lifetime_ns: u64,
    /// The innermost first.
    pub(crate) frames: Vec<Frame>,
}

impl Place {
    fn of(heap: &Profile, site: &Site, number: usize, frames: &[Rc<Frame>]) -> Self {
        Self {
            number,
            samples: site.samples,
            requests: site.count,
            requests_error: site.count_error,
            bytes: site.bytes,
            bytes_error: site.bytes_error,
            largest: site.largest,
            zeroed: site.zeroed,
            grown: site.grown,
            reallocations: site.resizes,
            released_on_another_thread: site.released_elsewhere,
            out_at_end: site.out_at_end,
            out_at_end_bytes: site.out_at_end_bytes,
            byte_seconds: site.byte_seconds,
            mean_bytes_out: site.byte_seconds * 1e9 / heap.duration_ns().max(1) as f64,
            median_lifetime_ns: site.lifetimes.p50_ns,
            frames: frames.iter().map(|frame| Frame::clone(frame)).collect(),
        }
    }

    /// Its frames as lines.
    pub(crate) fn lines(&self) -> String {
        if self.frames.is_empty() {
            return UNKNOWN.into();
        }
        let line = |(depth, frame): (usize, &Frame)| {
            let inlined = if frame.inlined { ", inlined" } else { "" };
            format!("{}{}{inlined}", if depth == 0 { "" } else { "< " }, frame.place())
        };
        self.frames.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Call stacks that are shown as one are one place.
#[derive(Debug)]
pub(crate) struct Joined {
    /// By stack: the number of its place.
    of_stack: Vec<usize>,
    /// How many frames were looked at.
    frames: usize,
}

impl Joined {
    /// Joins the stacks whose innermost `frames` frames look alike.
    pub(crate) fn new(heap: &Profile, stacks: &Stacks, frames: usize) -> Self {
        let mut numbers = HashMap::new();
        let of_stack = (0..heap.stacks())
            .map(|stack| {
                let shown = stacks.frames(stack as u32).iter().take(frames);
                let next = numbers.len();
                *numbers.entry(shown.map(|frame| frame.place()).collect::<Vec<_>>()).or_insert(next)
            })
            .collect();
        Self { of_stack, frames }
    }

    /// Returns the place of a stack.
    pub(crate) fn place(&self, stack: u32) -> usize {
        self.of_stack.get(stack as usize).copied().unwrap_or(0)
    }

    /// Returns the places, the most bytes first.
    pub(crate) fn places(&self, heap: &Profile, stacks: &Stacks) -> Vec<Place> {
        let place = |site: &Site| {
            let shown = stacks.frames(site.stack);
            Place::of(heap, site, self.place(site.stack), &shown[..self.frames.min(shown.len())])
        };
        heap.sites_by(|stack| self.place(stack)).iter().map(place).collect()
    }
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
- place: functions of the standard library in front of the program's are left out, except the one that was called.";

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
    "place, innermost first",
];

/// Returns the first places as a table.
pub(crate) fn table(places: &[Place], order: Order) -> Table {
    let mut table = print::table(&COLUMNS);
    let sum = |value: fn(&Place) -> f64| places.iter().map(value).sum::<f64>().max(f64::MIN_POSITIVE);
    let (bytes, held) = (sum(|place| place.bytes), sum(|place| place.byte_seconds));
    let mut sorted: Vec<&Place> = places.iter().collect();
    if order == Order::Held {
        sorted.sort_by(|one, other| other.byte_seconds.total_cmp(&one.byte_seconds));
    }
    for place in sorted.into_iter().take(ROWS) {
        let of_requests = |part: f64| format!("{:.0} %", 100.0 * part / place.requests.max(1.0));
        let requests = match place.requests_error {
            0.0 => format!("{:.0}", place.requests),
            error => format!("{:.0} ± {error:.0}", place.requests),
        };
        let cells = [
            share(place.bytes / bytes),
            share(place.byte_seconds / held),
            requests,
            memory((place.bytes / place.requests.max(1.0)) as u64),
            memory(place.mean_bytes_out as u64),
            memory(place.out_at_end_bytes as u64),
            // Where all were still out, no lifetime is known.
            if place.out_at_end < place.requests {
                time(place.median_lifetime_ns as f64)
            } else {
                "–".into()
            },
            format!("{}, {}", of_requests(place.grown), of_requests(place.zeroed)),
        ];
        table.add_row(print::figures(cells).chain([Cell::new(place.lines())]));
    }
    table
}
