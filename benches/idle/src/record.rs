//! What the trials found, for programs.

use bufadvise::measure::host::Host;
use buftrials::median;
use buftrials::watch::Sample;
use serde::{Deserialize, Serialize};

use crate::engine::{Allocator, Engine};
use crate::idle::Course;

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// Where it was measured.
    pub host: Host,
    /// How long the phases took.
    pub course: Course,
    /// The server that is idle after a burst.
    pub idle: Vec<IdleRun>,
    /// The server with a budget.
    pub budget: Vec<BudgetRun>,
}

/// A part of a run, in milliseconds since its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// What happened.
    pub name: String,
    /// When it began.
    pub from: u64,
    /// When it was over.
    pub to: u64,
}

/// Small frames for a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Frames that were answered.
    pub requests: u64,
    /// How long it took.
    pub seconds: f64,
    /// The server's time on processors.
    pub processor_seconds: f64,
}

impl Load {
    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Microseconds of a processor for each request.
    #[must_use]
    pub fn micros(&self) -> f64 {
        self.processor_seconds * 1e6 / self.requests.max(1) as f64
    }
}

/// A server before, in and after a burst. All memory is resident, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleRun {
    /// Where it had its buffers from.
    pub engine: Engine,
    /// The allocator below.
    pub allocator: Allocator,
    /// With all connections, each of which has had small frames answered.
    pub before: u64,
    /// The most that it ever had.
    pub peak: u64,
    /// After the silence.
    pub idle: u64,
    /// The small frames after the burst.
    pub busy: Load,
    /// The small frames after the silence.
    pub after: Load,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Memory over time.
    pub samples: Vec<Sample>,
}

/// Clients that send at once more than a server may hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetRun {
    /// Where it had its buffers from.
    pub engine: Engine,
    /// The allocator below.
    pub allocator: Allocator,
    /// The number of clients.
    pub clients: usize,
    /// Of those, the number that read their answer slowly.
    pub slow: usize,
    /// Bytes of each client's frame.
    pub bytes: usize,
    /// The most bytes that the pool may have; none for an engine that has no bound.
    pub budget: Option<usize>,
    /// The most bytes that the pool had at once.
    pub pool_peak: Option<usize>,
    /// The growth of resident memory at its peak, in bytes.
    pub growth: u64,
    /// The number of right answers.
    pub answered: usize,
    /// What went wrong, if something did.
    pub failure: Option<String>,
    /// Milliseconds that a client waited for its answer: the mean of those that read at once.
    pub mean_wait: f64,
    /// The longest of these waits.
    pub longest_wait: f64,
}

impl Results {
    /// The runs of an engine over an allocator.
    pub fn runs(&self, engine: Engine, allocator: Allocator) -> impl Iterator<Item = &IdleRun> {
        self.idle.iter().filter(move |run| run.engine == engine && run.allocator == allocator)
    }

    /// The median of something over the runs of an engine; `None` without any.
    pub fn median(&self, engine: Engine, allocator: Allocator, of: impl Fn(&IdleRun) -> f64) -> Option<f64> {
        median(self.runs(engine, allocator).map(of))
    }
}

/// Results that are made up, for tests of what is read out of them.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    pub(crate) fn run(engine: Engine, before: u64, peak: u64, idle: u64, requests: u64) -> IdleRun {
        let load = Load { requests, seconds: 1.0, processor_seconds: 1.0 };
        let (phases, samples) = (Vec::new(), Vec::new());
        let allocator = Allocator::Glibc;
        let (busy, after) = (load, load);
        IdleRun { engine, allocator, before, peak, idle, busy, after, phases, samples }
    }

    pub(crate) fn results(idle: Vec<IdleRun>) -> Results {
        Results { host: Host::default(), course: Course::FULL, idle, budget: Vec::new() }
    }
}
