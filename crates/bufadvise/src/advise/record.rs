//! The record that is written down: everything that was measured, and what follows from it.

use serde::{Deserialize, Serialize};

use super::by_place::Verdict;
use super::candidate::Candidate;
use super::choice::{Choice, Entrant, Prices};
use super::exact::Counted;
use super::over_time::OverTime;
use super::traffic::Needs;
use crate::measure::host::Host;
use crate::measure::tail::Tail;

/// The version of [`Advice`]. It rises with every change that a reader could stumble over.
pub(crate) const SCHEMA: u32 = 4;

/// What a child process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub(crate) enum Said {
    /// A replay is done that does not count: the process lives.
    Warm,
    /// A round of some candidate is done.
    Round,
    /// The time of that candidate, in nanoseconds per request.
    Time { candidate: usize, nanos: f64 },
    /// Its single operations.
    Tail { candidate: usize, tail: Tail },
    /// What its pools refused and took, and memory over time.
    Counted { counted: Counted, bytes: Vec<u64> },
}

/// Times of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Nanoseconds of all threads together per request and its release: the median over the
    /// processes, what made a process faster or slower for all of them taken out. Of those who did
    /// not come to the last stage it is scaled by what the others took there, so that a slow phase
    /// of the machine is not taken for theirs.
    pub(crate) median: f64,
    /// A tenth of the processes was no slower.
    pub(crate) p10: f64,
    /// Nine tenths were not.
    pub(crate) p90: f64,
    /// How many processes there were.
    pub(crate) processes: usize,
}

/// What is known of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its strategy.
    pub(crate) strategy: String,
    /// The same with its settings, as `AnyBuilder` reads it.
    #[serde(rename = "settings")]
    pub(crate) candidate: Candidate,
    /// What its pools refused and took, from the replay in exact order.
    pub(crate) counted: Counted,
    /// The same at twice the connections.
    pub(crate) twice: Counted,
    /// Share of the requests that the pools refused.
    pub(crate) refused: f64,
    /// The same at twice the connections.
    pub(crate) refused_twice: f64,
    /// The time in shares of a processor, at the recorded rate; of the median.
    pub(crate) processor: f64,
    /// Share of the requests that are allocations of their own by these settings.
    pub(crate) apart: f64,
    /// Up to which stage it was timed: 1 is the first.
    pub(crate) stage: usize,
    /// Its times in that stage.
    pub(crate) times: Times,
    /// Its single operations, where it came to the last stage.
    pub(crate) tail: Option<Tail>,
}

/// How a longer replay of all candidates turned out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// The median of each candidate in it, in the order of the entries.
    pub(crate) medians: Vec<f64>,
    /// Processes that each was timed in.
    pub(crate) processes: usize,
    /// What the rule chooses by these times.
    pub(crate) best: usize,
    /// The first choice's time, in times of that one's.
    pub(crate) ratio: f64,
    /// Its memory likewise.
    pub(crate) memory_ratio: f64,
    /// Whether the first choice is as good: within 5 % of the time, or of a time that nobody would
    /// notice with no more memory.
    pub(crate) holds: bool,
}

/// The machine, without what belongs to whatever folder the program is run in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Processor model.
    pub(crate) cpu: String,
    /// Cores that may be used.
    pub(crate) cores: usize,
    /// Bytes of memory.
    pub(crate) memory_bytes: u64,
    /// Operating system and kernel.
    pub(crate) kernel: String,
    /// When, in UTC.
    pub(crate) date: String,
    /// Load average over one minute before the end.
    pub(crate) load: Option<f64>,
}

impl From<Host> for Machine {
    fn from(host: Host) -> Self {
        let Host { cpu, cores, memory_bytes, kernel, date, load, .. } = host;
        Self { cpu, cores, memory_bytes, kernel, date, load }
    }
}

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// The machine.
    pub(crate) machine: Machine,
    /// All candidates.
    pub(crate) entries: Vec<Entry>,
    /// Strategies and settings that took no part, and why.
    pub(crate) left_out: Vec<String>,
    /// What to take; the numbers are those of entries.
    pub(crate) choice: Choice,
    /// Memory over time, now and with the choice.
    pub(crate) memory: OverTime,
    /// The trade-off: entries that none is better than in both time and memory, the fastest first.
    pub(crate) front: Vec<usize>,
    /// How to make it.
    pub(crate) code: String,
    /// What happens when there is more traffic than it has room for.
    pub(crate) beyond: String,
    /// Why, in sentences.
    pub(crate) why: Vec<String>,
    /// The verdicts on the largest places of a heap recording.
    #[serde(default)]
    pub(crate) places: Vec<Verdict>,
    /// The longer replay, if there was one.
    pub(crate) check: Option<Check>,
    /// How long it all took, except for the check.
    pub(crate) seconds: f64,
}

impl Advice {
    /// Returns what is chosen.
    pub(crate) fn pick(&self) -> &Entry {
        &self.entries[self.choice.pick]
    }
}

impl Entry {
    /// Makes what the rule chooses from: the candidate with these times.
    pub(crate) fn entrant(&self, times: &[f64]) -> Entrant {
        Entrant {
            times: times.to_vec(),
            bytes: self.bytes(),
            serves_all: self.serves_all(),
            is_control: self.candidate.is_control(),
        }
    }

    /// Returns memory at its peak: resident, or what the pools say where the system does not.
    pub(crate) fn bytes(&self) -> u64 {
        self.counted.bytes()
    }

    /// Returns whether its pools served all requests, those of twice the connections too.
    pub(crate) fn serves_all(&self) -> bool {
        self.counted.refused.all() == 0 && self.twice.refused.all() == 0
    }
}
