//! What is measured, as it is passed from child to parent and kept in `results.json`.

pub use bufadvise::measure::host::Host;
use serde::{Deserialize, Serialize};

use crate::harness::engine::{BASELINE, Kind};
use crate::harness::statistics::quantile;
pub use crate::harness::tail::Tail;

/// Version of the file's layout.
pub const SCHEMA: u32 = 4;

/// All results of one run of the matrix.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where and when.
    pub host: Host,
    /// How it was measured.
    pub settings: Settings,
    /// The columns.
    pub engines: Vec<Column>,
    /// The rows.
    pub cases: Vec<Row>,
    /// What was found.
    pub cells: Vec<Record>,
    /// Seconds that it all took.
    pub seconds: f64,
}

/// How it was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// `test`, `quick` or `full`.
    pub scale: String,
    /// Processes that each row was measured in.
    #[serde(default)]
    pub layouts: usize,
    /// Rounds at most, in each process.
    pub rounds: usize,
    /// Milliseconds that one engine's run in a round should take.
    pub run_ms: f64,
    /// Single operations timed for the tail.
    pub samples: usize,
}

/// A column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The engine that it is a setting of, or that it is without settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How it is used.
    pub idiom: String,
}

/// A row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its unique name.
    pub id: String,
    /// The workload.
    pub workload: String,
    /// The parameters, for people.
    pub parameters: String,
}

/// What was found for one cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The row's id.
    pub case: String,
    /// The column's name.
    pub engine: String,
    /// How it went.
    pub outcome: Outcome,
    /// Median divided by the median of `vec` in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_vec: Option<f64>,
    /// Calls of the global allocator per operation, in steady state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_calls: Option<f64>,
    /// Share of operations that the pool had nothing for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<f64>,
    /// Bytes that resident memory grew by at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
}

/// How a cell went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// Right bytes, and timed.
    Timed(Timing),
    /// Right bytes; not timed.
    Checked,
    /// Cannot be done with this engine.
    Unsupported {
        /// Why.
        reason: String,
    },
    /// Wrong bytes; not timed.
    Wrong {
        /// What was found.
        what: String,
    },
    /// It panicked or took its process down.
    Crashed {
        /// How.
        how: String,
    },
    /// It did not come back.
    Hung {
        /// How long it was waited for, in seconds.
        seconds: f64,
    },
}

impl Outcome {
    /// The outcome in a few words.
    #[must_use]
    pub fn explain(&self) -> String {
        match self {
            Self::Timed(timing) => format!("{:.2} ns", timing.median),
            Self::Checked => "right bytes".into(),
            Self::Unsupported { reason } => format!("unsupported: {reason}"),
            Self::Wrong { what } => format!("WRONG BYTES: {what}"),
            Self::Crashed { how } => format!("crashed: {how}"),
            Self::Hung { seconds } => format!("hung: nothing for {seconds:.0} s"),
        }
    }

    /// Whether it is a failure of the engine.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Wrong { .. } | Self::Crashed { .. } | Self::Hung { .. })
    }
}

/// Times of one cell, in nanoseconds per operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Half of the rounds took less.
    pub median: f64,
    /// A tenth of the rounds took less.
    pub p10: f64,
    /// A tenth of the rounds took more.
    pub p90: f64,
    /// Rounds.
    pub rounds: usize,
    /// Operations in each.
    pub operations: u64,
    /// Bytes that an operation moves, where that is the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Times of single operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
    /// All rounds, sorted: from child to parent only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nanos: Vec<f64>,
}

impl Timing {
    /// Takes more rounds in, of another process, and works the quantiles out again.
    pub fn merge(&mut self, more: &[f64]) {
        self.nanos.extend_from_slice(more);
        self.nanos.sort_by(f64::total_cmp);
        self.rounds = self.nanos.len();
        self.median = quantile(&self.nanos, 0.5);
        self.p10 = quantile(&self.nanos, 0.1);
        self.p90 = quantile(&self.nanos, 0.9);
    }
}

impl Record {
    /// A cell about which only the outcome is known yet.
    #[must_use]
    pub fn new(case: &str, engine: &str, outcome: Outcome) -> Self {
        Self {
            case: case.into(),
            engine: engine.into(),
            outcome,
            to_vec: None,
            heap_calls: None,
            fallbacks: None,
            peak_bytes: None,
        }
    }

    /// The times, if there are any.
    #[must_use]
    pub fn timing(&self) -> Option<&Timing> {
        match &self.outcome {
            Outcome::Timed(timing) => Some(timing),
            _ => None,
        }
    }
}

impl Results {
    /// The cell of a row and a column.
    #[must_use]
    pub fn cell(&self, case: &str, engine: &str) -> Option<&Record> {
        self.cells.iter().find(|record| record.case == case && record.engine == engine)
    }

    /// The median of a cell that was timed.
    #[must_use]
    pub fn median(&self, case: &str, engine: &str) -> Option<f64> {
        Some(self.cell(case, engine)?.timing()?.median)
    }

    /// Fills in the ratios to `vec`, from what was measured in the same rounds.
    pub fn compare(&mut self) {
        let ratio = |record: &Record| Some(record.timing()?.median / self.median(&record.case, BASELINE)?);
        let ratios: Vec<_> = self.cells.iter().map(ratio).collect();
        for (record, ratio) in self.cells.iter_mut().zip(ratios) {
            record.to_vec = ratio;
        }
    }

    /// The failures of engines of these kinds, a line each. One with other settings is of the kind
    /// of the one that it is a setting of.
    #[must_use]
    pub fn failures(&self, kinds: &[Kind]) -> Vec<String> {
        let column = |name: &str| self.engines.iter().find(|column| column.name == name);
        let is_meant = |name: &str| {
            let kind = |name| column(name).map(|column| column.kind);
            let of = column(name).and_then(|column| kind(column.of.as_deref()?));
            of.or_else(|| kind(name)).is_some_and(|kind| kinds.contains(&kind))
        };
        self.cells
            .iter()
            .filter(|record| record.outcome.is_failure() && is_meant(&record.engine))
            .map(|record| format!("{} at {}: {}", record.engine, record.case, record.outcome.explain()))
            .collect()
    }
}

/// A line from child to parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Message {
    /// This engine is at work now: if nothing more is heard, it is the one to blame.
    At {
        /// Its name.
        engine: String,
    },
    /// A round of all engines is done.
    Round {
        /// How many are.
        done: usize,
        /// How many there will be.
        of: usize,
    },
    /// A result.
    Cell(Box<Record>),
}

/// Results that are made up, for tests of what is read out of them.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    pub(crate) fn column(name: &str, kind: Kind) -> Column {
        Column { name: name.into(), kind, of: None, idiom: String::new() }
    }

    pub(crate) fn timed(case: &str, engine: &str, median: f64) -> Record {
        let mut timing = Timing { operations: 1, ..Timing::default() };
        timing.merge(&[median]);
        Record::new(case, engine, Outcome::Timed(timing))
    }

    /// The rows are those that the cells name, of `reuse` where they name no workload.
    pub(crate) fn results(engines: Vec<Column>, cells: Vec<Record>) -> Results {
        let mut ids: Vec<&String> = cells.iter().map(|record| &record.case).collect();
        ids.dedup();
        let row = |id: &String| {
            let (workload, parameters) = id.split_once('/').unwrap_or(("reuse", id));
            Row { id: id.clone(), workload: workload.into(), parameters: parameters.into() }
        };
        Results {
            schema: SCHEMA,
            host: Host::default(),
            settings: Settings { scale: "test".into(), layouts: 1, rounds: 1, run_ms: 1.0, samples: 0 },
            engines,
            cases: ids.into_iter().map(row).collect(),
            cells,
            seconds: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::timed;
    use super::*;

    #[test]
    fn rounds_of_several_processes_are_one() {
        let mut record = timed("reuse/64B", "slot", 10.0);
        let Outcome::Timed(timing) = &mut record.outcome else { unreachable!("just made") };
        timing.merge(&[2.0, 3.0]);
        assert_eq!((timing.median, timing.rounds), (3.0, 3), "one slow layout does not decide");
    }

    #[test]
    fn lines_survive_the_pipe() {
        let line = serde_json::to_string(&Message::Cell(Box::new(timed("a", "b", 1.5)))).unwrap();
        match serde_json::from_str(&line).unwrap() {
            Message::Cell(record) => assert_eq!(record.timing().map(|timing| timing.median), Some(1.5)),
            other => panic!("{other:?}"),
        }
    }
}
