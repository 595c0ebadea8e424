//! The figures of a candidate, and how its child processes say them.

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::choice::Entrant;
use super::replay_exact::{Counted, Replayed};
use crate::measure::statistics::quantile;

/// What a child process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub(crate) enum Said {
    /// The time of that candidate, in nanoseconds per request.
    Time { candidate: usize, nanos: f64 },
    /// What its pools refused and took, and memory over time.
    Counted(Replayed),
}

/// Times of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

impl Times {
    /// Sums up the times of the processes.
    pub(crate) fn of(times: &[f64]) -> Self {
        let mut nanos = times.to_vec();
        nanos.sort_by(f64::total_cmp);
        let at = |share| quantile(&nanos, share);
        Self { median: at(0.5), p10: at(0.1), p90: at(0.9), processes: nanos.len() }
    }
}

/// What is known of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Up to which stage it was timed: 1 is the first.
    pub(crate) stage: usize,
    /// Its times in that stage.
    pub(crate) times: Times,
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
