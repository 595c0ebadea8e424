//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use buftrials::run::{self, RunOptions, Scale};
use clap::{Parser, Subcommand};

use crate::engine::Engine;
use crate::plan::Plan;
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
    Run(RunOptions<Engine>),
    /// Run one cell in this process.
    #[command(hide = true)]
    Cell {
        #[arg(value_parser = run::told::<Options>)]
        options: Options,
    },
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    buftrials::finish(match Command::parse().task {
        Task::Run(run) => perform(&run),
        Task::Cell { options } => options.print(),
    })
}

fn perform(run: &RunOptions<Engine>) -> Result<()> {
    let scale = run.scale();
    let rounds = run.rounds.unwrap_or(if scale == Scale::Test { 1 } else { 3 });
    let plan = Plan { scale, rounds, engines: run.engine.clone() };
    let results = plan.run(&run.out)?;
    run.finish(&results, &report::of(&results), &marks::all(&results))
}
