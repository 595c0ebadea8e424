//! `show`: what is in a trace.

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, Result};
use buftrace::{Ending, Profile, Summary};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use serde::Serialize;

use crate::command::Answer;
use crate::drawing::number::{exact_memory, time};
use crate::held::Held;
use crate::input;
use crate::names::Stacks;
use crate::places::{self, Joined, Order, Place};
use crate::print;

/// Characters of a full bar.
const BAR: f64 = 40.0;
/// Rows of the table over time.
const TIMES: usize = 16;

/// Shows what is in a trace: sizes, lifetimes, bytes out over time. Of a heap recording it shows
/// which places of the program request most, and which hold most.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recording: a file that one of `buftrace`'s recorders wrote
    file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Take call stacks as one place whose innermost N frames look alike
    #[arg(long, value_name = "N", default_value_t = places::FRAMES)]
    frames: usize,
    /// Print how long which place of a heap recording held how many bytes instead: folded stacks,
    /// with bytes times milliseconds
    #[arg(long, conflicts_with = "json")]
    folded: bool,
    /// Draw the same as a flamegraph to this file, an SVG
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
}

/// What is shown; the JSON has all of it.
#[derive(Debug, Serialize)]
struct Shown {
    schema: u32,
    name: String,
    made_by: String,
    date: String,
    /// Whether the recording stopped at its limit.
    cut: bool,
    duration_ns: u64,
    threads: usize,
    requests: usize,
    requests_per_second: f64,
    released: usize,
    released_on_another_thread: usize,
    requested_while_others_are_out: usize,
    out_at_end: usize,
    most_out: usize,
    most_bytes_out: u64,
    requested_bytes: u64,
    distinct_sizes: usize,
    /// Sizes that half, 90 %, 99 % and all of the requests do not exceed.
    size_quantiles: [u64; 4],
    /// By size.
    sizes: Vec<SizeRow>,
    /// How long buffers were out in nanoseconds: half, 90 %, 99 %, 99.9 % and all of them no
    /// longer.
    lifetimes_ns: [u64; 5],
    /// The most bytes that were out in each of equal parts of the time.
    bytes_out_over_time: Vec<u64>,
    /// What the recording of a heap has beside the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<Heap>,
}

/// The recording of a heap.
#[derive(Debug, Serialize)]
struct Heap {
    /// Whether each request is there, not samples of them.
    exact: bool,
    samples: usize,
    /// Events that were lost. A recording without its end does not know all of them.
    lost: u64,
    knows_lost: bool,
    /// How the recording ended.
    ending: String,
    /// Where the memory was requested, the most bytes first.
    places: Vec<Place>,
    /// Code whose addresses have no names, and why.
    nameless: Vec<Nameless>,
}

/// Code without names.
#[derive(Debug, Serialize)]
struct Nameless {
    path: String,
    why: String,
}

impl Heap {
    fn of(heap: &Profile, stacks: &Stacks, frames: usize) -> Self {
        let places = Joined::new(heap, stacks, frames).places(heap, stacks);
        let nameless = stacks.nameless.iter();
        let nameless =
            nameless.map(|(path, why)| Nameless { path: path.clone(), why: why.clone() }).collect();
        Self {
            exact: heap.is_exact(),
            samples: heap.objects().len(),
            lost: heap.lost(),
            knows_lost: matches!(heap.ending(), Ending::Stopped | Ending::Limit),
            ending: match heap.ending() {
                Ending::Stopped => "complete".to_owned(),
                Ending::Limit => "stopped at its limit".to_owned(),
                Ending::Torn(error) => format!("torn: {error}"),
                _ => "in the midst of it".to_owned(),
            },
            places,
            nameless,
        }
    }
}

impl Heap {
    /// Returns the places as text.
    fn text(&self) -> String {
        let mut text = String::new();
        for (title, order) in [("that request most", Order::Bytes), ("that hold most", Order::Held)] {
            let places = places::fill(table(&places::COLUMNS), &self.places, order);
            text += &format!("\n\nPlaces {title}:\n{places}");
        }
        text += &format!("\n{}", places::LEGEND);
        for Nameless { path, why } in &self.nameless {
            text += &format!("\nWithout names: {path}: {why}.");
        }
        text
    }
}

#[derive(Debug, Serialize)]
struct SizeRow {
    up_to: u64,
    requests: usize,
}

impl Shown {
    fn of(summary: Summary, heap: Option<Heap>) -> Self {
        let life = summary.lifetimes;
        let row = |class: buftrace::SizeClass| SizeRow { up_to: class.up_to, requests: class.acquires };
        Self {
            schema: 2,
            requests_per_second: summary.acquires as f64 / (summary.duration_ns.max(1) as f64 / 1e9),
            name: summary.name,
            made_by: summary.made_by,
            date: summary.date,
            cut: summary.cut,
            duration_ns: summary.duration_ns,
            threads: summary.threads,
            requests: summary.acquires,
            released: summary.releases,
            released_on_another_thread: summary.cross_thread_releases,
            requested_while_others_are_out: summary.overlapping,
            out_at_end: summary.out_at_end,
            most_out: summary.max_live,
            most_bytes_out: summary.max_live_bytes,
            requested_bytes: summary.total_bytes,
            distinct_sizes: summary.distinct_sizes,
            size_quantiles: summary.size_quantiles,
            sizes: summary.sizes.into_iter().map(row).collect(),
            lifetimes_ns: [life.p50_ns, life.p90_ns, life.p99_ns, life.p999_ns, life.max_ns],
            bytes_out_over_time: summary.live_bytes,
            heap,
        }
    }

    /// Returns the trace as a whole.
    fn whole(&self) -> Table {
        let mut table = table(&["", ""]);
        let percent =
            |part: usize, of: usize| format!("{part} ({:.1} %)", 100.0 * part as f64 / of.max(1) as f64);
        let [half, most, nearly, all] = self.size_quantiles.map(exact_memory);
        let life = self.lifetimes_ns.map(|nanos| time(nanos as f64));
        let cut = if self.cut { " (without a regular end)" } else { "" };
        for (what, found) in [
            ("trace", format!("{}{cut}", self.name)),
            ("made by", self.made_by.clone()),
            ("date", self.date.clone()),
            ("duration", time(self.duration_ns as f64)),
            ("threads", self.threads.to_string()),
            ("requests", format!("{} ({:.0} per second)", self.requests, self.requests_per_second)),
            ("released", format!("{}; {} out at the end", self.released, self.out_at_end)),
            ("released on another thread", percent(self.released_on_another_thread, self.released)),
            ("requested while others are out", percent(self.requested_while_others_are_out, self.requests)),
            ("bytes requested", exact_memory(self.requested_bytes)),
            ("most out at once", format!("{} buffers, {}", self.most_out, exact_memory(self.most_bytes_out))),
            (
                "sizes",
                format!(
                    "{} different; 50 % up to {half}, 90 % {most}, 99 % {nearly}, all {all}",
                    self.distinct_sizes
                ),
            ),
            (
                "lifetimes",
                format!(
                    "50 % up to {}, 90 % {}, 99 % {}, 99.9 % {}, all {}",
                    life[0], life[1], life[2], life[3], life[4]
                ),
            ),
        ] {
            table.add_row([what.to_owned(), found]);
        }
        if let Some(heap) = &self.heap {
            let kind = if heap.exact { "each request" } else { "samples, and estimates from them" };
            let least = if heap.knows_lost { "" } else { "at least " };
            let found =
                format!("{kind}: {} objects, {least}{} lost; {}", heap.samples, heap.lost, heap.ending);
            table.add_row(["heap recording".to_owned(), found]);
        }
        table
    }

    fn by_size(&self) -> Table {
        let mut table = table(&["sizes up to", "requests", "share", ""]);
        for row in &self.sizes {
            let share = row.requests as f64 / self.requests.max(1) as f64;
            let cells =
                [exact_memory(row.up_to), row.requests.to_string(), format!("{:.1} %", share * 100.0)];
            let cells = cells.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
            table.add_row(cells.into_iter().chain([Cell::new(bar(share))]));
        }
        table
    }

    /// Returns the bytes that are out, the most of each part of the time.
    fn over_time(&self) -> Table {
        let mut table = table(&["time from", "most bytes out", ""]);
        let parts = self.bytes_out_over_time.len();
        let step = parts.div_ceil(TIMES).max(1);
        for (index, part) in self.bytes_out_over_time.chunks(step).enumerate() {
            let from = self.duration_ns as f64 * (index * step) as f64 / parts as f64;
            let most = part.iter().copied().max().unwrap_or(0);
            let share = most as f64 / self.most_bytes_out.max(1) as f64;
            let cells = [time(from), exact_memory(most)];
            let cells = cells.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
            table.add_row(cells.into_iter().chain([Cell::new(bar(share))]));
        }
        table
    }
}

impl Options {
    /// Prints it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is no trace. When a profile is wanted, and the trace has no
    /// places.
    pub(crate) fn run(&self) -> Result<Answer> {
        let read = input::read(&self.file)?;
        let heap = read.heap.as_ref().map(|heap| (heap, Stacks::of(heap)));
        if self.folded || self.flamegraph.is_some() {
            let (heap, stacks) = heap.as_ref().with_context(|| {
                format!(
                    "{} has no places: it is the trace of a pool. Recordings of a heap have some",
                    self.file.display()
                )
            })?;
            let held = Held::of(heap, stacks);
            if let Some(path) = &self.flamegraph {
                fs::write(path, held.flamegraph())
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            if self.folded {
                print::line(held.folded().trim_end_matches('\n'))?;
                return Ok(Answer::Yes);
            }
        }
        let heap = heap.as_ref().map(|(heap, stacks)| Heap::of(heap, stacks, self.frames.max(1)));
        let shown = Shown::of(read.trace.summary(), heap);
        if self.json {
            print::line(serde_json::to_string_pretty(&shown)?)?;
        } else {
            let places = shown.heap.as_ref().map(Heap::text).unwrap_or_default();
            let (whole, by_size, over_time) = (shown.whole(), shown.by_size(), shown.over_time());
            print::line(format_args!("{whole}\n{by_size}\n{over_time}{places}"))?;
        }
        Ok(Answer::Yes)
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    if !std::io::stdout().is_terminal() {
        table.force_no_tty();
    }
    if header.iter().any(|title| !title.is_empty()) {
        table.set_header(header);
    }
    table
}

/// Returns a bar as long as the share of the longest one.
fn bar(share: f64) -> String {
    "█".repeat((share * BAR).round() as usize)
}
