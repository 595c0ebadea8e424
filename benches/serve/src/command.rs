//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use buftrials::allocator::Allocator;
use buftrials::run::{self, RunOptions, Scale};
use buftrials::system;
use clap::{Parser, Subcommand};

use crate::plan::Plan;
use crate::work::{Amount, Cell, Engine, Part};
use crate::{burst, marks, report, server};

/// Programs that users know, over pools and over what programs use without one.
#[derive(Debug, Parser)]
#[command(name = "bufserve")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the programs, and write a report.
    Run {
        #[command(flatten)]
        run: RunOptions<Engine>,
        /// Run only these parts.
        #[arg(long, short, value_enum, value_delimiter = ',', value_name = "P")]
        part: Vec<Part>,
        /// Run only over these allocators.
        #[arg(long, short, value_enum, value_delimiter = ',', value_name = "A")]
        allocator: Vec<Allocator>,
    },
    /// Serve until standard input ends.
    #[command(hide = true)]
    Server {
        #[arg(value_parser = run::told::<Cell>)]
        cell: Cell,
    },
    /// Acquire and drop buffers, and print what that took.
    #[command(hide = true)]
    Burst {
        #[arg(value_parser = run::told::<(Cell, Amount)>)]
        told: (Cell, Amount),
    },
}

/// The program: each of them is this, over its allocator.
#[must_use]
pub fn main() -> ExitCode {
    system::raise_open_files();
    buftrials::finish(match Command::parse().task {
        Task::Run { run, part, allocator } => perform(&run, part, allocator),
        Task::Server { cell } => server::run(cell),
        Task::Burst { told: (cell, amount) } => print(cell, amount),
    })
}

fn print(cell: Cell, amount: Amount) -> Result<()> {
    println!("{}", serde_json::to_string(&burst::run(cell, amount)?)?);
    Ok(())
}

fn perform(run: &RunOptions<Engine>, parts: Vec<Part>, allocators: Vec<Allocator>) -> Result<()> {
    let scale = run.scale();
    let rounds = run.rounds.unwrap_or(if scale == Scale::Full { 3 } else { 1 });
    let plan = Plan { scale, rounds, parts, engines: run.engine.clone(), allocators };
    let results = plan.run()?;
    run.finish(&results, &report::of(&results), &marks::all(&results))
}
