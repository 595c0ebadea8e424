//! `cargo xtask …`: one command each for benchmarks, tests, features, `no_std` and style.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

mod api;
mod bench;
mod broken;
mod busy;
mod ci;
mod clean_room;
mod compilers;
mod features;
mod firmware;
mod foreign;
mod fuzz;
mod instructions;
mod job_queue;
mod measure;
mod models;
mod mutant_build;
mod mutant_tree;
mod mutants;
mod nostd;
mod orderings;
mod outside;
mod package;
mod packages;
mod platforms;
mod programs;
mod rust_code;
mod sanitize;
mod shell;
mod size;
mod steps;
mod strategies;
mod test;
mod test_binaries;
mod tidy;
mod tools;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::steps::Outcome;

/// Commands of the bufworks workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the public interface of each package in `docs/api`; with `--check`, compare the lists.
    Api(api::Args),
    /// Run the benchmark matrix, and write a report.
    Bench(bench::Args),
    /// Run tests on mutants, sources with a known defect: each test must fail.
    Broken(broken::Args),
    /// Run the tests of waiting for some minutes while sixteen threads spin.
    Busy(busy::Args),
    /// Run the jobs of continuous integration: all of them, or the named ones.
    Ci(ci::Args),
    /// Build each package with none, each and all of its features, and test those that change what a pool does.
    Features(features::Args),
    /// Run the tests of other crates, unchanged, in programs that have `bufalloc` as their global allocator.
    Foreign(foreign::Args),
    /// Run the fuzz targets, or their checked-in inputs.
    Fuzz(fuzz::Args),
    /// Measure what a server keeps resident after a burst, with each strategy and each allocator.
    Idle(measure::Args),
    /// Run the models of loom: every interleaving of a few threads.
    Loom,
    /// Run a program without the standard library, and firmware in an emulator. Build the libraries for
    /// microcontrollers.
    Nostd,
    /// Build and run the programs of `examples/outside`, outside of the workspace. Each may have at most as many lines as the one
    /// without bufworks.
    Programs,
    /// Measure a reader of large files over every pool, past the page cache and from it.
    Reader(measure::Args),
    /// Run the integration tests under a sanitizer.
    Sanitize(sanitize::Args),
    /// Measure processor time and memory of well-known programs, over the sharded pool and without it.
    ///
    /// `service` is the upload and download service of `examples/web` over axum, hyper and tonic, whose buffers may have 64 MiB: bodies of
    /// 64 B to 8 MiB on 500 connections at once. `container` is that of axum with 48 MiB in a container of 64 MiB, where `systemd-run
    /// --user` makes one. `relay` sends frames with their length in front back on 200 connections. `burst` acquires 1 GiB
    /// of buffers and drops them. Compared are the pool with and without a keeper, a `Vec` with a semaphore, axum's extractor of `Bytes`,
    /// http-body-util and prost with a semaphore, and tokio-util's codec, over glibc and mimalloc. Servers without a pool, over glibc,
    /// jemalloc, mimalloc and bufalloc, answer clients that remain connected:
    /// `upload` is axum with bodies of 8 MiB, `requests` the same with small ones, `messages` tonic, `websocket` tokio-tungstenite, and
    /// `frames` the codec. Each program is a fresh process; clients in another one check every answer.
    ///
    /// Options: --quick for one round with less traffic, --rounds N, --part service,container,relay,burst,upload,requests,messages,websocket,frames,
    /// --engine codec,vec,pool,pool-keeper,stock,bounded, --allocator glibc,jemalloc,jemalloc-thread,mimalloc,bufalloc, --out DIR, --check to
    /// fail where a mark does not hold.
    Serve(measure::Args),
    /// Run the larger models of shuttle: schedules of several threads that are drawn at random.
    Shuttle,
    /// Count lines, words, public types, circles of files and locked packages, and print the limits.
    Size(size::Args),
    /// Run the tests of every crate, the documentation's examples and the example programs. With
    /// `--long`, run the trials in full.
    Test(test::Args),
    /// Check what the compiler does not: links, module docs, file lengths, comments of unsafe code, mutants.
    Tidy(tidy::Args),
}

/// Does what the command line `arguments` say, the program's name before them.
fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<()> {
    match Command::parse_from(arguments).task {
        Task::Api(args) => args.run(),
        Task::Bench(args) => args.run(),
        Task::Broken(args) => args.run(),
        Task::Busy(args) => args.run(),
        Task::Ci(args) => args.run(),
        Task::Features(args) => args.run(),
        Task::Foreign(args) => args.run(),
        Task::Fuzz(args) => args.run(),
        Task::Idle(args) => args.run("bufidle", "jemalloc,mimalloc"),
        Task::Loom => models::LOOM.check(),
        Task::Nostd => nostd::check().map(Outcome::report),
        Task::Programs => programs::check(),
        Task::Reader(args) => args.run("bufreader", "peers"),
        Task::Sanitize(args) => args.run(),
        Task::Serve(args) => args.run("bufserve", "jemalloc,mimalloc"),
        Task::Shuttle => models::SHUTTLE.check(),
        Task::Size(args) => args.run(),
        Task::Test(args) => args.run(),
        Task::Tidy(args) => args.run(),
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
