//! A command's steps: which one is running, how long each took, and a table at the end.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::test_binaries::Ran;

/// How a step ended, if it did not fail.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    /// Not done, and why: something that the machine lacks.
    Skipped(String),
}

impl Outcome {
    /// A skipped step, with its reason.
    pub(crate) fn skipped(reason: impl Into<String>) -> Result<Self> {
        Ok(Self::Skipped(reason.into()))
    }

    /// Says why a command that was asked for by itself did nothing.
    pub(crate) fn report(self) {
        if let Self::Skipped(reason) = self {
            println!("skipped: {reason}");
        }
    }
}

/// Steps that are run one after the other; a failed one does not keep the others from running.
#[derive(Debug)]
pub(crate) struct Steps {
    title: &'static str,
    total: usize,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    outcome: Result<Outcome>,
    took: Duration,
    processor: Option<Duration>,
}

impl Steps {
    /// For `total` steps of the command `title`.
    pub(crate) fn new(title: &'static str, total: usize) -> Self {
        Self { title, total, rows: Vec::new() }
    }

    /// Runs one step, timed.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome>) {
        let at = self.rows.len() + 1;
        eprintln!("\n==> {} {at}/{}: {name}", self.title, self.total);
        let start = Instant::now();
        let outcome = run();
        self.record(name, outcome, start.elapsed(), None);
    }

    /// Adds a step that ran elsewhere, with the processor time that it took, where that is known.
    pub(crate) fn add(
        &mut self,
        name: &str,
        outcome: Result<Outcome>,
        took: Duration,
        processor: Option<Duration>,
    ) {
        let at = self.rows.len() + 1;
        eprintln!("==> {} {at}/{}: {name} ended after {:.1} s", self.title, self.total, took.as_secs_f64());
        self.record(name, outcome, took, processor);
    }

    /// Adds a program that ran elsewhere.
    pub(crate) fn add_ran(&mut self, name: &str, ran: Result<Ran>) {
        let took = ran.as_ref().map_or(Duration::ZERO, |ran| ran.took);
        self.add(name, ran.and_then(|ran| ran.outcome()), took, None);
    }

    fn record(&mut self, name: &str, outcome: Result<Outcome>, took: Duration, processor: Option<Duration>) {
        match &outcome {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(reason)) => eprintln!("skipped: {reason}"),
            Err(error) => eprintln!("error: {error:#}"),
        }
        self.rows.push(Row { name: name.to_owned(), outcome, took, processor });
    }

    /// Prints the table; fails if a step did, and says which and why.
    pub(crate) fn finish(self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        write!(out, "\n{}", self.table())?;
        out.flush()?;
        let failed: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.name.as_str(), row.outcome.as_ref().err()?)))
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = failed.iter().map(|(name, _)| *name).collect();
        let why: String = failed.iter().map(|(name, error)| format!("\n{name}: {error:#}")).collect();
        bail!("{}: failed: {}{why}", self.title, names.join(", "));
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(self.title.len());
        let has_processor = self.rows.iter().any(|row| row.processor.is_some());
        let title = if has_processor { "  processor" } else { "" };
        let mut text = format!("{:width$}  seconds{title}  result\n", self.title);
        for Row { name, outcome, took, processor } in &self.rows {
            let result = match outcome {
                Ok(Outcome::Passed) => "passed".to_owned(),
                Ok(Outcome::Skipped(reason)) => format!("skipped: {reason}"),
                // The first line: compilers print more than a table holds.
                Err(error) => {
                    format!("FAILED: {}", format!("{error:#}").lines().next().unwrap_or_default())
                }
            };
            let processor = match processor {
                Some(processor) => format!("  {:9.1}", processor.as_secs_f64()),
                None if has_processor => format!("  {:9}", ""),
                None => String::new(),
            };
            text += &format!("{name:width$}  {:7.1}{processor}  {result}\n", took.as_secs_f64());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_failed_step_is_named_and_the_rest_still_runs() {
        let mut steps = Steps::new("demo", 3);
        let mut ran = 0;
        steps.step("first", || Ok(Outcome::Passed));
        steps.step("second", || Err(anyhow!("broken\nsecond line")));
        steps.step("third", || {
            ran += 1;
            Outcome::skipped("nothing to do")
        });
        assert_eq!(ran, 1);
        let table = steps.table();
        assert!(table.contains("FAILED: broken\n") && table.contains("skipped: nothing to do"), "{table}");
        let error = steps.finish().unwrap_err().to_string();
        assert_eq!(error, "demo: failed: second\nsecond: broken\nsecond line");
    }

    #[test]
    fn processor_time_has_a_column_where_it_is_known() {
        let mut steps = Steps::new("demo", 2);
        steps.add("known", Ok(Outcome::Passed), Duration::from_secs(2), Some(Duration::from_millis(3500)));
        steps.add("unknown", Ok(Outcome::Passed), Duration::from_secs(1), None);
        let table = "demo     seconds  processor  result\n\
                     known        2.0        3.5  passed\n\
                     unknown      1.0             passed\n";
        assert_eq!(steps.table(), table);
    }

    #[test]
    fn skipped_is_not_failed() {
        let mut steps = Steps::new("demo", 1);
        steps.step("only", || Outcome::skipped("no tool"));
        assert!(steps.finish().is_ok());
    }
}
