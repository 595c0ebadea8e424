//! `bufbench`: runs the benchmark matrix and reports on it. `cargo xtask bench` builds and starts
//! it.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use bufbench::harness::measure::Scale;
use bufbench::harness::parent::{self, Plan};
use bufbench::harness::{Kind, child};
use bufbench::report;
use bufbench::select::{self, Child};
use clap::{Parser, Subcommand};

/// The benchmark matrix.
#[derive(Debug, Parser)]
#[command(name = "bufbench")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the matrix, and write a report.
    Run(Run),
    /// Measure one row, in a process of its own.
    #[command(hide = true)]
    Group {
        #[command(flatten)]
        child: Child,
        #[arg(long)]
        alone: bool,
        /// Run rounds only, and measure no tails.
        #[arg(long)]
        times_only: bool,
    },
    /// Run each cell of one row once.
    #[command(hide = true)]
    Test {
        #[command(flatten)]
        child: Child,
    },
    /// Measure one cell's memory.
    #[command(hide = true)]
    Memory {
        #[command(flatten)]
        child: Child,
    },
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Run fewer rounds and smaller files, in a few minutes.
    #[arg(long)]
    quick: bool,
    /// Run each cell once, to check it.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// Run only these workloads, or single rows such as `reuse/64B`.
    #[arg(long, short, value_delimiter = ',', value_name = "W")]
    workload: Vec<String>,
    /// Run only these contestants, each also with other settings and without any, and `vec`.
    #[arg(long, short, value_delimiter = ',', value_name = "C")]
    contestant: Vec<String>,
    /// List the rows and columns, and run nothing.
    #[arg(long)]
    list: bool,
    /// The folder that the report is written to.
    #[arg(long, default_value = "target/bench-report", value_name = "DIR")]
    out: PathBuf,
    /// The program that counts heap calls.
    #[arg(long, value_name = "FILE")]
    count: Option<PathBuf>,
    /// Do not measure memory.
    #[arg(long)]
    no_memory: bool,
}

fn main() -> ExitCode {
    buftrials::finish(perform(Command::parse().task))
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Run(run) => run.run(),
        Task::Group { child, alone, times_only } => {
            let (case, contestants) = child.find()?;
            let mut effort = child.effort();
            if times_only {
                effort.samples = 0;
            }
            child::group(&case, &contestants, &effort, alone)
        }
        Task::Test { child } => {
            let (case, contestants) = child.find()?;
            child::test(&case, &contestants)
        }
        Task::Memory { child } => {
            let (case, contestants) = child.find()?;
            let [contestant] = contestants.as_slice() else { bail!("memory is measured for one contestant") };
            child::memory(&case, contestant, child.effort().memory)
        }
    }
}

impl Run {
    fn run(self) -> Result<()> {
        let scale = match (self.test, self.quick) {
            (true, _) => Scale::Test,
            (_, true) => Scale::Quick,
            _ => Scale::Full,
        };
        let cases = select::cases(scale, &self.workload)?;
        let contestants = select::contestants(&self.contestant)?;
        if self.list {
            return Ok(select::list(&mut io::stdout().lock(), &cases, &contestants)?);
        }
        let plan = Plan { scale, cases, contestants, count: self.count, memory: !self.no_memory };
        let results = parent::run(&plan)?;
        if scale == Scale::Test {
            report::print_test(&results);
        } else {
            results.write(&self.out)?;
            report::of(&results).show(&self.out)?;
        }
        for failure in results.failures(&[Kind::Peer]) {
            eprintln!("peer failed: {failure}");
        }
        let ours = results.failures(&[Kind::Strategy, Kind::Control]);
        if !ours.is_empty() {
            bail!("{} cells failed:\n  {}", ours.len(), ours.join("\n  "));
        }
        Ok(())
    }
}
