//! What is written down: everything that was measured, and what follows from it.

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::choice::Choice;
use super::exact::Counted;
use super::traffic::Needs;
use crate::harness::record::{Host, Tail};

/// The version of [`Advice`]. It rises with every change that a reader could stumble over.
pub const SCHEMA: u32 = 1;

/// What a child process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub(crate) enum Said {
    /// A round of some candidate is done.
    Round,
    /// The time of that candidate, in nanoseconds per request.
    Time { candidate: usize, nanos: f64 },
    /// Its single operations.
    Tail { candidate: usize, tail: Tail },
    /// What its pools refused and took.
    Counted { counted: Counted },
}

/// Times of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Nanoseconds of all threads together per request and its release: the median over the processes, what made a process faster
    /// or slower for all of them taken out. Of those who did not come to the last
    /// stage it is scaled by what the others took there, so that a slow phase of the machine is not taken for theirs.
    pub median: f64,
    /// A tenth of the processes was no slower.
    pub p10: f64,
    /// Nine tenths were not.
    pub p90: f64,
    /// How many processes there were.
    pub processes: usize,
}

/// What is known of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name on the command line.
    pub id: String,
    /// Its settings.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// What its pools refused and took, from the replay in exact order.
    pub counted: Counted,
    /// Share of the requests that the pools refused.
    pub refused: f64,
    /// Share of the requests that are allocations of their own by these settings.
    pub apart: f64,
    /// Up to which stage it was timed: 1 is the first.
    pub stage: usize,
    /// Its times in that stage.
    pub times: Times,
    /// Its single operations, where it came to the last stage.
    pub tail: Option<Tail>,
}

/// How a longer replay of all candidates turned out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The median of each candidate in it, in the order of the entries.
    pub medians: Vec<f64>,
    /// Processes that each was timed in.
    pub processes: usize,
    /// The fastest of those that refused nothing.
    pub best: usize,
    /// The first choice's time, in times of the fastest's.
    pub ratio: f64,
}

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Advice {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The trace's file.
    pub trace: String,
    /// The trace's name.
    pub name: String,
    /// What was replayed of it needs this.
    pub needs: Needs,
    /// Acquires that are in the trace.
    pub acquires: usize,
    /// Of those replayed, none of which is empty or over 4 GiB, in the first part of a long trace.
    pub replayed: usize,
    /// Threads that were recorded.
    pub threads: usize,
    /// Workers that the timed replay shared them out to.
    pub workers: usize,
    /// Share of the buffers that were released on another thread.
    pub crossing: f64,
    /// Share of these that the timed replay released on another worker.
    pub crossing_kept: f64,
    /// The machine.
    pub host: Host,
    /// All candidates.
    pub entries: Vec<Entry>,
    /// Strategies and settings that took no part, and why.
    pub left_out: Vec<String>,
    /// What to take; the numbers are those of entries.
    pub choice: Choice,
    /// How to make it.
    pub code: String,
    /// Why, in sentences.
    pub why: Vec<String>,
    /// The longer replay, if there was one.
    pub check: Option<Check>,
    /// How long it all took, but for the check.
    pub seconds: f64,
}

impl Advice {
    /// What is chosen.
    #[must_use]
    pub fn pick(&self) -> &Entry {
        &self.entries[self.choice.pick]
    }

    /// The entry of a control.
    #[must_use]
    pub fn control(&self, strategy: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.candidate.strategy() == strategy)
    }
}

impl Entry {
    /// Memory at its peak: resident, or what the pools say where the system does not.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counted.peak_bytes.unwrap_or(self.counted.reserved_bytes as u64)
    }

    /// Whether its pools served all requests.
    #[must_use]
    pub fn serves_all(&self) -> bool {
        self.counted.refused.all() == 0
    }
}
