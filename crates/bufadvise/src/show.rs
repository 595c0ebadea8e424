//! `show`: what is in a trace.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail};
use buftrace::{Ending, Profile, Summary};
use serde::Serialize;

use crate::call_sites::{self, CallSite, Order};
use crate::input::{self, Input};
use crate::names::Stacks;
use crate::number::{memory, time};
use crate::{print, retention};

/// Shows what is in a trace: sizes, lifetimes, bytes out over time. Of a heap recording it shows
/// which call sites of the program request most, and which hold most.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recording: a file that `bufadvise record` or one of `buftrace`'s recorders wrote
    file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Merge call stacks whose innermost N frames are equal into one call site
    #[arg(long, value_name = "N", default_value_t = call_sites::FRAMES)]
    frames: NonZeroUsize,
    /// Print folded stacks for flamegraph tools instead: bytes times milliseconds in use, by call
    /// stack
    #[arg(long, conflicts_with = "json")]
    folded: bool,
}

/// What is shown; the JSON has all of it.
#[derive(Debug, Serialize)]
struct Shown {
    schema: u32,
    #[serde(flatten)]
    trace: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<Heap>,
}

/// The version of the JSON.
const SCHEMA: u32 = 4;

/// The recording of a heap.
#[derive(Debug, Serialize)]
struct Heap {
    program: String,
    seconds: f64,
    /// What the process took: processor time, page faults, memory at its peak.
    processor_seconds: f64,
    faults: u64,
    peak_bytes: u64,
    /// The requests and their bytes, or estimates of them.
    requests: f64,
    bytes: f64,
    /// Whether each request is there, not samples of them.
    exact: bool,
    samples: usize,
    /// Events that were lost. A recording without its end does not know all of them.
    lost: u64,
    knows_lost: bool,
    /// How the recording ended.
    ending: String,
    /// Where the memory was requested, the most bytes first.
    call_sites: Vec<CallSite>,
    /// Code whose addresses have no names, and why.
    nameless: BTreeMap<String, String>,
}

impl Heap {
    fn of(heap: &Profile, stacks: &Stacks, frames: NonZeroUsize) -> Self {
        let (usage, call_sites) = (heap.usage(), call_sites::of(heap, stacks, frames));
        Self {
            program: print::in_line(&heap.info().program),
            seconds: heap.duration_ns() as f64 / 1e9,
            processor_seconds: usage.processor_ns as f64 / 1e9,
            faults: usage.faults,
            peak_bytes: usage.peak_bytes,
            requests: call_sites.iter().map(|one| one.site.count).fold(0.0, |sum, count| sum + count),
            bytes: call_sites.iter().map(|one| one.site.bytes).fold(0.0, |sum, bytes| sum + bytes),
            exact: heap.is_exact(),
            samples: heap.objects().len(),
            lost: heap.lost(),
            knows_lost: matches!(heap.ending(), Ending::Stopped | Ending::Limit),
            ending: input::ending(heap),
            call_sites,
            nameless: stacks.nameless.clone(),
        }
    }

    /// Returns how it was recorded, and the call sites, as text.
    fn text(&self) -> String {
        let kind = if self.exact { "each request" } else { "samples, and estimates from them" };
        let least = if self.knows_lost { "" } else { "at least " };
        let mut text = format!(
            "{}: {:.0} requests of {} in {}\n{} of processor time, {} page faults, {} of memory at the peak\n\
             {kind}: {}, {least}{} lost; {}",
            self.program,
            self.requests,
            memory(self.bytes as u64),
            time(self.seconds * 1e9),
            time(self.processor_seconds * 1e9),
            self.faults,
            memory(self.peak_bytes),
            print::count(self.samples as u64, "object"),
            self.lost,
            self.ending
        );
        for (title, order) in [("that request most", Order::Bytes), ("that hold most", Order::Held)] {
            text += &format!("\n\nCall sites {title}:\n{}", call_sites::table(&self.call_sites, order));
        }
        text += &format!("\n{}", call_sites::LEGEND);
        for (path, why) in &self.nameless {
            text += &format!("\nWithout names: {}: {why}.", print::in_line(path));
        }
        text
    }
}

impl Options {
    /// Prints it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is no trace. When folded stacks are wanted, and the trace
    /// has none.
    pub(crate) fn run(&self) -> Result<bool> {
        let (trace, heap) = match input::read(&self.file)? {
            Input::Trace(_) if self.folded => bail!(
                "{} has no call sites: it is the trace of a pool. Recordings of a heap have some",
                self.file.display()
            ),
            Input::Trace(trace) => (Some(trace.summary()), None),
            Input::Heap(heap) => {
                let stacks = Stacks::of(&heap);
                if self.folded {
                    print::line(retention::folded(&heap, &stacks).trim_end_matches('\n'))?;
                    return Ok(true);
                }
                (None, Some(Heap::of(&heap, &stacks, self.frames)))
            }
        };
        match (&trace, &heap) {
            (Some(trace), _) if !self.json => print::line(trace)?,
            (_, Some(heap)) if !self.json => print::line(heap.text())?,
            _ => print::line(serde_json::to_string_pretty(&Shown { schema: SCHEMA, trace, heap })?)?,
        }
        Ok(true)
    }
}
