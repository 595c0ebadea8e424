//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use buftrials::mark;
use clap::{Parser, Subcommand};

use crate::contestant::{Allocator, Contestant};
use crate::plan::{Plan, Scale, own_folder};
use crate::profile::Job;
use crate::record::Results;
use crate::server::Options;
use crate::{marks, report, system};

/// A quick run has one round, which may miss a mark by chance. Those that the mark compares then have this number of rounds more.
const MORE_ROUNDS: usize = 4;

/// What a server keeps resident once a burst is over.
#[derive(Debug, Parser)]
#[command(name = "bufidle")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the trials, and write a report.
    Run(Run),
    /// Write the report of earlier trials again.
    Report {
        /// The report's folder.
        #[arg(long, default_value = "target/idle-report", value_name = "DIR")]
        out: PathBuf,
    },
    /// Serve until standard input ends.
    #[command(hide = true)]
    Serve(Options),
    /// Replace buffers in a proxy's sizes, in this process.
    #[command(hide = true)]
    Profile(Job),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Run what the marks need, in two minutes.
    #[arg(long)]
    quick: bool,
    /// Run with a few clients, to see that all of it works.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// The number of turns of each contestant [default: 3, quick: 1, and 4 more of those that miss a mark].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run only these contestants in the first trial.
    #[arg(long, short, value_enum, value_delimiter = ',', value_name = "C")]
    contestant: Vec<Contestant>,
    /// Run only over these allocators.
    #[arg(long, short, value_enum, value_delimiter = ',', value_name = "A")]
    allocator: Vec<Allocator>,
    /// The folder that the report is written to.
    #[arg(long, default_value = "target/idle-report", value_name = "DIR")]
    out: PathBuf,
    /// Fail if something does not hold that has to.
    #[arg(long, conflicts_with = "test")]
    check: bool,
}

/// The program: all of them are this, each over its allocator.
#[must_use]
pub fn main() -> ExitCode {
    buftrials::finish(perform(Command::parse().task))
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Run(run) => run.run(),
        Task::Report { out } => report::of(&Results::read(&out)?).show(&out),
        Task::Serve(options) => options.run(),
        Task::Profile(job) => job.run(),
    }
}

impl Run {
    fn run(self) -> Result<()> {
        ensure!(cfg!(target_os = "linux"), "the memory of a process is read from Linux' /proc");
        system::raise_open_files();
        let scale = match (self.test, self.quick) {
            (true, _) => Scale::Test,
            (_, true) => Scale::Quick,
            _ => Scale::Full,
        };
        let more_rounds = if scale == Scale::Quick && self.rounds.is_none() { MORE_ROUNDS } else { 0 };
        let plan = Plan {
            scale,
            rounds: self.rounds.unwrap_or(if scale == Scale::Full { 3 } else { 1 }),
            more_rounds,
            contestants: self.contestant,
            allocators: if self.allocator.is_empty() { Allocator::ALL.to_vec() } else { self.allocator },
            folder: own_folder()?,
        };
        let results = plan.run()?;
        results.write(&self.out)?;
        report::of(&results).show(&self.out)?;
        // Nothing has to hold of four clients.
        mark::judge(&marks::all(&results), self.check && scale != Scale::Test)
    }
}
