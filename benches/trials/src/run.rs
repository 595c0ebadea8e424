//! What the command lines have in common, and what parents and children say to each other.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::mark::{self, Mark};
use crate::report::Report;
use crate::results;

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// All of it.
    Full,
    /// What marks need, in minutes.
    Quick,
    /// A little of each, to see that all of it works.
    Test,
}

impl Scale {
    /// The scale that two flags ask for.
    #[must_use]
    pub fn of(quick: bool, test: bool) -> Self {
        match (test, quick) {
            (true, _) => Self::Test,
            (_, true) => Self::Quick,
            _ => Self::Full,
        }
    }
}

/// Options of a program whose results have marks.
#[derive(Debug, Clone, clap::Args)]
pub struct RunOptions<C: ValueEnum + Clone + Send + Sync + 'static> {
    /// Run what the marks need, in minutes.
    #[arg(long)]
    quick: bool,
    /// Run a little of each, to see that all of it works.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// The number of turns of each engine.
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Run only these engines.
    #[arg(long, short, value_enum, value_delimiter = ',', value_name = "E")]
    pub engine: Vec<C>,
    /// The folder that the report is written to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Fail if something does not hold that has to.
    #[arg(long, conflicts_with = "test")]
    check: bool,
}

impl<C: ValueEnum + Clone + Send + Sync + 'static> RunOptions<C> {
    /// How much is asked for.
    #[must_use]
    pub fn scale(&self) -> Scale {
        Scale::of(self.quick, self.test)
    }

    /// Writes the results and the report, prints the report, and judges where that is asked for.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or something does not hold.
    pub fn finish(&self, results: &impl Serialize, report: &Report, marks: &[Mark]) -> Result<()> {
        results::write(results, &self.out)?;
        report.show(&self.out)?;
        mark::judge(marks, self.check)
    }
}

/// The name of a value on the command line.
#[must_use]
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reads what a parent told in one word of the command line: clap's `value_parser`.
///
/// # Errors
///
/// When it is something else.
pub fn told<T: DeserializeOwned>(word: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(word)
}

/// Runs a child to its end, and reads what it printed.
///
/// # Errors
///
/// When it cannot be started, fails, or prints something else.
pub fn answer<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}
