//! `show`: what is in a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use buftrace::{Ending, Profile, Summary};
use serde::Serialize;

use crate::answer::Answer;
use crate::call_sites::{self, CallSite, Joined, Order};
use crate::names::Stacks;
use crate::{input, print, retention};

/// Shows what is in a trace: sizes, lifetimes, bytes out over time. Of a heap recording it shows
/// which call sites of the program request most, and which hold most.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recording: a file that one of `buftrace`'s recorders wrote
    file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Take call stacks as one call site whose innermost N frames look alike
    #[arg(long, value_name = "N", default_value_t = call_sites::FRAMES)]
    frames: usize,
    /// Print how long which call site of a heap recording held how many bytes instead: folded
    /// stacks for flamegraph tools, with bytes times milliseconds
    #[arg(long, conflicts_with = "json")]
    folded: bool,
}

/// What is shown; the JSON has all of it.
#[derive(Debug, Serialize)]
struct Shown {
    schema: u32,
    #[serde(flatten)]
    trace: Summary,
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
    call_sites: Vec<CallSite>,
    /// Code whose addresses have no names, and why.
    nameless: BTreeMap<String, String>,
}

impl Heap {
    fn of(heap: &Profile, stacks: &Stacks, frames: usize) -> Self {
        Self {
            exact: heap.is_exact(),
            samples: heap.objects().len(),
            lost: heap.lost(),
            knows_lost: matches!(heap.ending(), Ending::Stopped | Ending::Limit),
            ending: input::ending(heap),
            call_sites: Joined::new(heap, stacks, frames).call_sites(heap, stacks),
            nameless: stacks.nameless.clone(),
        }
    }

    /// Returns how it was recorded, and the call sites, as text.
    fn text(&self) -> String {
        let kind = if self.exact { "each request" } else { "samples, and estimates from them" };
        let least = if self.knows_lost { "" } else { "at least " };
        let mut text = format!(
            "\nheap recording: {kind}: {} objects, {least}{} lost; {}",
            self.samples, self.lost, self.ending
        );
        for (title, order) in [("that request most", Order::Bytes), ("that hold most", Order::Held)] {
            text += &format!("\n\nCall sites {title}:\n{}", call_sites::table(&self.call_sites, order));
        }
        text += &format!("\n{}", call_sites::LEGEND);
        for (path, why) in &self.nameless {
            text += &format!("\nWithout names: {path}: {why}.");
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
    pub(crate) fn run(&self) -> Result<Answer> {
        let read = input::read(&self.file)?;
        let heap = read.heap.as_ref().map(|heap| (heap, Stacks::of(heap)));
        if self.folded {
            let (heap, stacks) = heap.as_ref().with_context(|| {
                format!(
                    "{} has no call sites: it is the trace of a pool. Recordings of a heap have some",
                    self.file.display()
                )
            })?;
            print::line(retention::folded(heap, stacks).trim_end_matches('\n'))?;
            return Ok(Answer::Yes);
        }
        let heap = heap.as_ref().map(|(heap, stacks)| Heap::of(heap, stacks, self.frames.max(1)));
        let shown = Shown { schema: 3, trace: read.trace.summary(), heap };
        if self.json {
            print::line(serde_json::to_string_pretty(&shown)?)?;
        } else {
            let heap = shown.heap.as_ref().map(Heap::text).unwrap_or_default();
            print::line(format_args!("{}{heap}", shown.trace))?;
        }
        Ok(Answer::Yes)
    }
}
