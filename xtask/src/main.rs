//! `cargo xtask …`: one command each for benchmarks, tests, features, `no_std` and style.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

mod advise;
mod api;
mod bare;
mod bench;
mod broken;
mod busy;
mod ci;
mod compilers;
mod copied;
mod coverage;
mod features;
mod firmware;
mod first_examples;
mod fuzz;
mod idle;
mod instructions;
mod models;
mod mutants;
mod nostd;
mod orderings;
mod outside;
mod package;
mod packages;
mod platforms;
mod programs;
mod proxy;
mod queue;
mod reader;
mod sanitize;
mod shell;
mod size;
mod steps;
mod strategies;
mod stress;
mod test;
mod tidy;
mod traces;
mod trials;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Commands of the bufworks workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Recommend the strategy and the settings that fit a recorded trace.
    Advise(advise::Args),
    /// List the public interface of each package in `docs/api`; with `--check`, compare the lists.
    Api(api::Args),
    /// Run the benchmark matrix, and write a report.
    Bench(bench::Args),
    /// Run trials against builds with a known defect; each has to fail.
    Broken(broken::Args),
    /// Run the tests of waiting beside sixteen endless loops, for some minutes.
    Busy(busy::Args),
    /// Run the jobs of continuous integration: all of them, or those that are named.
    Ci(ci::Args),
    /// Report the lines that the tests and the fuzz targets' inputs reach.
    Coverage(coverage::Args),
    /// Build each two features in every way, and test those that touch each other; with `--every`, build
    /// every combination.
    Features(features::Args),
    /// Run the fuzz targets, or their checked-in inputs.
    Fuzz(fuzz::Args),
    /// Measure what a server keeps resident after a burst, with each strategy and each allocator.
    Idle(idle::Args),
    /// Run the models of loom: every interleaving of a few threads.
    Loom,
    /// Run a program without the standard library, and firmware in an emulator. Build the libraries for
    /// microcontrollers.
    Nostd(nostd::Args),
    /// Measure the TCP proxy with each strategy, between real servers and a thousand clients.
    Proxy(proxy::Args),
    /// Measure a reader of large files over every pool, past the page cache and out of it.
    Reader(reader::Args),
    /// Run the integration tests under a sanitizer.
    Sanitize(sanitize::Args),
    /// Run the larger models of shuttle: schedules of several threads that are drawn at random.
    Shuttle,
    /// Count lines, words, public types, circles of files and locked packages, beside what they may come to.
    Size(size::Args),
    /// List the files and lines that a strategy needs, and mark those that exist.
    Strategy(strategies::Args),
    /// Run every strategy under load for a number of minutes, against shadow models.
    Stress(stress::Args),
    /// Run the tests of every crate, the documentation's examples and the example programs. With
    /// `--long`, run the trials in full.
    Test(test::Args),
    /// Check what the compiler does not: links, module docs, file lengths, comments of unsafe code, mutants.
    Tidy(tidy::Args),
    /// Make the recorded traces again from real servers, or show one.
    Traces(traces::Args),
}

/// Does what the command line `arguments` say, the program's name before them.
fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<()> {
    match Command::parse_from(arguments).task {
        Task::Advise(args) => args.run(),
        Task::Api(args) => args.run(),
        Task::Bench(args) => args.run(),
        Task::Broken(args) => args.run(),
        Task::Busy(args) => args.run(),
        Task::Ci(args) => args.run(),
        Task::Coverage(args) => args.run(),
        Task::Features(args) => args.run(),
        Task::Fuzz(args) => args.run(),
        Task::Idle(args) => args.run(),
        Task::Loom => models::LOOM.check(),
        Task::Nostd(args) => args.run(),
        Task::Proxy(args) => args.run(),
        Task::Reader(args) => args.run(),
        Task::Sanitize(args) => args.run(),
        Task::Shuttle => models::SHUTTLE.check(),
        Task::Size(args) => args.run(),
        Task::Strategy(args) => args.run(),
        Task::Stress(args) => args.run(),
        Task::Test(args) => args.run(),
        Task::Tidy(args) => args.run(),
        Task::Traces(args) => args.run(),
    }
}

fn main() -> ExitCode {
    // Not by returning the error: with `RUST_BACKTRACE` set that would bury what failed under a backtrace.
    match shell::enter_root().and_then(|()| run(env::args_os())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
