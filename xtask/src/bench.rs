//! `cargo xtask bench`: builds the benchmark matrix and runs it. All measuring and reporting is `bufbench`'s.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::instructions;
use crate::shell::{self, command};

/// The trace that the adviser is tried with.
const TRACE: &str = "benches/traces/redis.buftrace";

/// Options of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run fewer rounds and smaller files, in three minutes with the build.
    #[arg(long)]
    quick: bool,
    /// Compare with the crates that a user would pick instead.
    #[arg(long)]
    peers: bool,
    /// Run each cell and the adviser once, not optimised, to check them, as CI does.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// Count instructions per operation under valgrind, and fail if a count has risen.
    #[arg(long, conflicts_with_all = ["quick", "test", "peers", "workload", "engine", "list", "out", "times_only"])]
    instructions: bool,
    /// Write the counts to `benches/instructions/instructions.json` instead of comparing them.
    #[arg(long, requires = "instructions")]
    update: bool,
    /// Search for so many seconds for traffic in which a strategy without settings is many times as slow as the best.
    #[arg(long, value_name = "S", num_args = 0..=1, default_missing_value = "120", conflicts_with_all = ["quick", "test", "peers", "instructions", "workload", "engine", "list", "out", "times_only"])]
    cliffs: Option<u64>,
    /// Run only these workloads, or single rows such as `reuse/64B`.
    #[arg(long, short, value_delimiter = ',', value_name = "W")]
    workload: Vec<String>,
    /// Run only these engines, each also with other settings and without any, and `vec`, with which all are compared.
    #[arg(long, short, value_delimiter = ',', value_name = "E")]
    engine: Vec<String>,
    /// List the rows and columns, and run nothing.
    #[arg(long)]
    list: bool,
    /// The folder that the report is written to.
    #[arg(long, default_value = "target/bench-report", value_name = "DIR")]
    out: PathBuf,
    /// Measure times only: no heap calls, no fallbacks, no memory.
    #[arg(long)]
    times_only: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if self.instructions {
            return instructions::run(self.update);
        }
        if let Some(seconds) = self.cliffs {
            self.build(false)?;
            let (program, seconds) = (self.program("bufbench"), seconds.to_string());
            return shell::run(Command::new(program).args(["cliffs", "--seconds", &seconds]));
        }
        let counts = self.is_timed() && !self.times_only;
        self.build(counts)?;
        shell::run(&mut self.command(counts))?;
        // Of some rows alone, nobody asks for advice.
        if self.test && self.workload.is_empty() && self.engine.is_empty() && !self.list {
            shell::run(&mut command!(
                "cargo run --package bufadvise --bin bufadvise -- advise {TRACE} --table"
            ))?;
        }
        Ok(())
    }

    /// Builds what measures, and what counts.
    fn build(&self, counts: bool) -> Result<()> {
        let profile = match (self.is_quick(), self.is_timed()) {
            (true, _) => "quick",
            (false, true) => "bench",
            (false, false) => "dev",
        };
        let build = |bins: &[&str], profile: &str, features: &[&str]| {
            let (bins, features) = (bins.iter().flat_map(|bin| ["--bin", bin]), features.join(","));
            shell::run(&mut command!(
                "cargo build --package bufbench --profile {profile} {bins...} --features {features}"
            ))
        };
        let peers = if self.peers { &["peers"][..] } else { &[] };
        if self.quick && counts {
            // Both from the same libraries: these do not count their fallbacks, and are compiled once.
            return build(&["bufbench", "bufbench-count"], profile, peers);
        }
        build(&["bufbench"], profile, peers)?;
        if counts {
            let features = if self.peers { &["count", "pools"][..] } else { &["count"] };
            build(&["bufbench-count"], "release", features)?;
        }
        Ok(())
    }

    /// The matrix's own command line.
    fn command(&self, counts: bool) -> Command {
        let mut command = Command::new(self.program("bufbench"));
        command.arg("run");
        let flags = [
            ("--quick", self.quick),
            ("--test", self.test),
            ("--list", self.list),
            ("--no-memory", self.times_only),
        ];
        command.args(flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0));
        for workload in &self.workload {
            command.args(["--workload", workload]);
        }
        for engine in &self.engine {
            command.args(["--engine", engine]);
        }
        command.arg("--out").arg(&self.out);
        if counts {
            command.arg("--count").arg(self.program("bufbench-count"));
        }
        command
    }

    /// Where a program that was built is. The profiles `bench` and `release` have one folder.
    fn program(&self, name: &str) -> PathBuf {
        let folder = match (self.is_quick(), self.is_timed()) {
            (true, _) => "quick",
            (false, true) => "release",
            (false, false) => "debug",
        };
        shell::target_folder().join(folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Whether what measures is built in minutes.
    fn is_quick(&self) -> bool {
        self.quick || self.cliffs.is_some()
    }

    /// Whether something is measured.
    fn is_timed(&self) -> bool {
        !(self.test || self.list)
    }
}
