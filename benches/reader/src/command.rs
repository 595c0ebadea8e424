//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use buftrials::mark;
use clap::{Parser, Subcommand};

use crate::contestant::Contestant;
use crate::plan::{Plan, Results, Scale};
use crate::trial::Options;
use crate::{marks, report};

/// A reader of large files over every pool.
#[derive(Debug, Parser)]
#[command(name = "bufreader")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the cells, and write a report.
    Run(Run),
    /// Write the report of an earlier run again.
    Report {
        /// The report's folder.
        #[arg(long, default_value = "target/reader-report", value_name = "DIR")]
        out: PathBuf,
    },
    /// Run one cell in this process.
    #[command(hide = true)]
    Cell(Options),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Run what the marks need, in minutes.
    #[arg(long)]
    quick: bool,
    /// Run with a small file, to see that all of it works.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// The number of turns of each cell [default: 3, test: 1].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run only these contestants.
    #[arg(long, short, value_enum, value_delimiter = ',', value_name = "C")]
    contestant: Vec<Contestant>,
    /// The folder that the report is written to, and the file of tensors. It is on a disk.
    #[arg(long, default_value = "target/reader-report", value_name = "DIR")]
    out: PathBuf,
    /// Fail if something does not hold that has to.
    #[arg(long, conflicts_with = "test")]
    check: bool,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    buftrials::finish(perform(Command::parse().task))
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Run(run) => run.run(),
        Task::Report { out } => report::of(&Results::read(&out)?).show(&out),
        Task::Cell(options) => options.print(),
    }
}

impl Run {
    fn run(self) -> Result<()> {
        let scale = match (self.test, self.quick) {
            (true, _) => Scale::Test,
            (_, true) => Scale::Quick,
            _ => Scale::Full,
        };
        let rounds = self.rounds.unwrap_or(if scale == Scale::Test { 1 } else { 3 });
        let plan = Plan { scale, rounds, contestants: self.contestant };
        let results = plan.run(&self.out)?;
        results.write(&self.out)?;
        report::of(&results).show(&self.out)?;
        // Nothing has to hold of a small file.
        mark::judge(&marks::all(&results), self.check && scale != Scale::Test)
    }
}
