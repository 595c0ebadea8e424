//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use buftrials::run::{self, RunOptions, Scale};
use buftrials::system;
use clap::{Parser, Subcommand};

use crate::engine::{Allocator, Engine};
use crate::plan::Plan;
use crate::server::Options;
use crate::{marks, report};

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
    Run {
        #[command(flatten)]
        run: RunOptions<Engine>,
        /// Run only over these allocators.
        #[arg(long, short, value_enum, value_delimiter = ',', value_name = "A")]
        allocator: Vec<Allocator>,
    },
    /// Serve until standard input ends.
    #[command(hide = true)]
    Serve {
        #[arg(value_parser = run::told::<Options>)]
        options: Options,
    },
}

/// The program: all of them are this, each over its allocator.
#[must_use]
pub fn main() -> ExitCode {
    buftrials::finish(match Command::parse().task {
        Task::Run { run, allocator } => perform(&run, allocator),
        Task::Serve { options } => options.run(),
    })
}

fn perform(run: &RunOptions<Engine>, allocators: Vec<Allocator>) -> Result<()> {
    system::raise_open_files();
    let scale = run.scale();
    let plan = Plan {
        scale,
        rounds: run.rounds.unwrap_or(if scale == Scale::Full { 3 } else { 1 }),
        engines: run.engine.clone(),
        allocators: if allocators.is_empty() { Allocator::plain().collect() } else { allocators },
    };
    let results = plan.run()?;
    run.finish(&results, &report::of(&results), &marks::all(&results))
}
