//! The record that is written down: everything that was measured, and what follows from it.

use serde::Serialize;

use super::choice::{Choice, Prices};
use super::entry::Entry;
use super::memory_timeline::MemoryTimeline;
use super::per_site::Verdict;
use super::traffic::Needs;

/// The version of [`Advice`]. It rises with every change that a reader could stumble over.
pub(crate) const SCHEMA: u32 = 5;

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Advice {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// The trace's file.
    pub(crate) trace: String,
    /// The trace's name.
    pub(crate) name: String,
    /// What was replayed of it needs this.
    pub(crate) needs: Needs,
    /// What the settings have room for.
    pub(crate) room: Needs,
    /// What time and memory are worth.
    pub(crate) prices: Prices,
    /// Acquires that are in the trace.
    pub(crate) acquires: usize,
    /// Of those replayed, none of which is empty or over 4 GiB, in the first part of a long trace.
    pub(crate) replayed: usize,
    /// Threads that were recorded.
    pub(crate) threads: usize,
    /// Workers that the timed replay shared them out to.
    pub(crate) workers: usize,
    /// Share of the buffers that were released on another thread.
    pub(crate) crossing: f64,
    /// Share of these that the timed replay released on another worker.
    pub(crate) crossing_kept: f64,
    /// The version of this program.
    pub(crate) version: String,
    /// The processor that it was measured on, and when, in UTC.
    pub(crate) machine: String,
    pub(crate) date: String,
    /// All candidates.
    pub(crate) entries: Vec<Entry>,
    /// What to take; the numbers are those of entries.
    pub(crate) choice: Choice,
    /// Memory over time, now and with the choice.
    pub(crate) memory: MemoryTimeline,
    /// The trade-off: entries that none is better than in both time and memory, the fastest first.
    pub(crate) front: Vec<usize>,
    /// How to make it.
    pub(crate) code: String,
    /// What happens when there is more traffic than it has room for.
    pub(crate) beyond: String,
    /// Why, in sentences.
    pub(crate) why: Vec<String>,
    /// The verdicts on the largest call sites of a heap recording.
    pub(crate) call_sites: Vec<Verdict>,
    /// How long it all took.
    pub(crate) seconds: f64,
}

impl Advice {
    /// Returns what is chosen.
    pub(crate) fn pick(&self) -> &Entry {
        &self.entries[self.choice.pick]
    }
}
