//! `bufbench`: runs the benchmark matrix and reports on it. `cargo xtask bench` builds and starts
//! it.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use bufbench::harness::Kind;
use bufbench::harness::child::{self, Job};
use bufbench::harness::measure::Scale;
use bufbench::harness::parent::{self, Plan};
use bufbench::{cliffs, report, select};
use buftrials::run::told;
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
    Run(Options),
    /// Search for traffic in which a strategy is slow.
    Cliffs(cliffs::Options),
    /// Measure one row, in a process of its own.
    #[command(hide = true)]
    Job {
        #[arg(value_parser = told::<Job>)]
        job: Job,
    },
}

#[derive(Debug, clap::Args)]
struct Options {
    /// Run fewer rounds and smaller files, in a few minutes.
    #[arg(long)]
    quick: bool,
    /// Run each cell once, to check it.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// Run only these workloads, or single rows such as `reuse/64B`.
    #[arg(long, short, value_delimiter = ',', value_name = "W")]
    workload: Vec<String>,
    /// Run only these engines, each also with other settings and without any, and `vec`.
    #[arg(long, short, value_delimiter = ',', value_name = "E")]
    engine: Vec<String>,
    /// List the rows and columns, and run nothing.
    #[arg(long)]
    list: bool,
    /// The folder that the report is written to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The program that counts heap calls.
    #[arg(long, value_name = "FILE")]
    count: Option<PathBuf>,
    /// Do not measure memory.
    #[arg(long)]
    no_memory: bool,
}

fn main() -> ExitCode {
    buftrials::finish(match Command::parse().task {
        Task::Run(options) => options.run(),
        Task::Cliffs(options) => options.run(),
        // Nothing is counted here.
        Task::Job { job } => child::perform(&job, &select::named(&job.engines), || 0),
    })
}

impl Options {
    fn run(self) -> Result<()> {
        let scale = Scale::of(self.quick, self.test);
        let cases = select::cases(scale, &self.workload)?;
        let engines = select::engines(&self.engine)?;
        if self.list {
            return match io::stdout().write_all(select::list(&cases, &engines).as_bytes()) {
                // A reader that has seen enough, such as `head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => Ok(written?),
            };
        }
        let plan = Plan { scale, cases, engines, count: self.count, memory: !self.no_memory };
        let results = parent::run(&plan)?;
        if scale == Scale::Test {
            report::print_test(&results);
        } else {
            buftrials::results::write(&results, &self.out)?;
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
