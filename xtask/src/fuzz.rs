//! `cargo xtask fuzz`: the fuzz targets in `fuzz`, with libFuzzer and AddressSanitizer.
//!
//! Targets that run are built with the flags that cargo-fuzz sets, so that only a nightly toolchain and a C++ compiler are needed.
//! The replay needs no counters: it builds as `sanitize` does, in the same folder, and so finds the libraries of others built.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sanitize;
use crate::shell;
use crate::steps::{Outcome, Steps};
use crate::test::default_env;

pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";
/// A file for each target.
const TARGETS: &str = "fuzz/fuzz_targets";
/// A folder of inputs for each target, which are checked in.
const CORPORA: &str = "fuzz/corpus";
/// A file for each target that has one: words that libFuzzer puts into its inputs.
const WORDS: &str = "fuzz/words";
/// Where it is built, and where what a run finds is kept.
const BUILT: &str = "target/fuzz";

/// Counters on every edge, and comparisons that libFuzzer learns from.
const COUNTERS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// Longer runs are of several processes, one after the other: AddressSanitizer has only a limited number of threads for each.
const PART_SECONDS: u32 = 600;

/// No input is longer, in bytes.
const MAX_BYTES: usize = 2000;

/// Options of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The targets to run; without any, all targets run.
    targets: Vec<String>,
    /// The seconds that each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run the checked-in inputs once, and nothing else.
    #[arg(long)]
    replay: bool,
    /// Print the names of the targets.
    #[arg(long)]
    list: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let all = names()?;
        if self.list {
            all.iter().for_each(|name| println!("{name}"));
            return Ok(());
        }
        for name in &self.targets {
            ensure!(
                all.contains(name),
                "no fuzz target is called `{name}`: expected one of {}",
                all.join(", ")
            );
        }
        let chosen = if self.targets.is_empty() { all } else { self.targets };
        let outcome = if self.replay { replay_each(&chosen) } else { run_each(&chosen, self.seconds) };
        outcome.map(Outcome::tell)
    }
}

/// Runs all that is checked in once.
pub(crate) fn replay() -> Result<Outcome> {
    replay_each(&names()?)
}

/// The names of all targets, in order.
fn names() -> Result<Vec<String>> {
    let files = fs::read_dir(TARGETS).with_context(|| format!("cannot list {TARGETS}"))?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "no fuzz targets in {TARGETS}");
    Ok(names)
}

fn replay_each(names: &[String]) -> Result<Outcome> {
    each(names, &Build::REPLAY, |program, name| {
        let inputs = inputs(name)?;
        let mut command = fuzzer(program);
        // Files instead of their folder: libFuzzer refuses to learn from a program without counters.
        command.args(&inputs);
        let text = shell::run_tests(&mut command)?;
        ensure!(replayed(&text) == inputs.len(), "{} of {} inputs ran", replayed(&text), inputs.len());
        Ok(Outcome::Passed)
    })
}

/// What is checked in for a target.
fn inputs(name: &str) -> Result<Vec<PathBuf>> {
    let corpus = Path::new(CORPORA).join(name);
    let files = fs::read_dir(&corpus).with_context(|| format!("cannot list {}", corpus.display()))?;
    let mut inputs = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    inputs.sort();
    ensure!(!inputs.is_empty(), "{} has no inputs", corpus.display());
    Ok(inputs)
}

fn run_each(names: &[String], seconds: u32) -> Result<Outcome> {
    each(names, &Build::RUN, |program, name| {
        let [found, failed] = ["corpus", "failed"].map(|kind| Path::new(BUILT).join(kind).join(name));
        for folder in [&found, &failed] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let (mut left, mut executions) = (seconds, 0);
        while left > 0 {
            let part = left.min(PART_SECONDS);
            left -= part;
            let mut command = fuzzer(program);
            command.arg(format!("-max_total_time={part}"));
            command.arg(format!("-max_len={MAX_BYTES}"));
            command.arg(format!("-artifact_prefix={}/", failed.display()));
            command.arg("-print_final_stats=1");
            let words = Path::new(WORDS).join(name);
            if words.is_file() {
                command.arg(format!("-dict={}", words.display()));
            }
            // New inputs go to the first; inputs that are checked in are read as well.
            command.arg(&found);
            let corpus = Path::new(CORPORA).join(name);
            if corpus.is_dir() {
                command.arg(corpus);
            }
            executions += executed(&shell::run_tests(&mut command)?)?;
        }
        println!("{name}: {executions} executions in {seconds} s");
        Ok(Outcome::Passed)
    })
}

/// How many executions libFuzzer says there were.
fn executed(text: &str) -> Result<u64> {
    let count = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    count.and_then(|count| count.trim().parse().ok()).context("libFuzzer does not say how many executions")
}

/// How many inputs libFuzzer says that it ran, of those that were named.
fn replayed(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("Executed ")).count()
}

/// How targets are built.
struct Build {
    /// What is done with them.
    title: &'static str,
    /// Where what is built goes, and cargo's name for the profile and its folder.
    folder: &'static str,
    profile: &'static str,
    profile_folder: &'static str,
    /// Flags besides AddressSanitizer's.
    flags: &'static [&'static str],
}

impl Build {
    /// To run for long.
    const RUN: Self = Self {
        title: "fuzz",
        folder: BUILT,
        profile: "release",
        profile_folder: "release",
        flags: &COUNTERS,
    };
    /// To run a few inputs once: what is not optimised is sooner built.
    const REPLAY: Self = Self {
        title: "replay",
        folder: sanitize::ADDRESS_FOLDER,
        profile: "dev",
        profile_folder: "debug",
        flags: &[],
    };
}

/// Builds the targets, and runs each.
fn each(names: &[String], how: &Build, run: impl Fn(&Path, &str) -> Result<Outcome>) -> Result<Outcome> {
    let Some(mut build) = shell::cargo_of("nightly") else {
        return Outcome::skipped("no nightly toolchain installed");
    };
    let host = shell::host_triple()?;
    if !sanitize::is_possible(&host) {
        return Outcome::skipped(format!("no sanitizers for {host}"));
    }
    if !shell::works(Command::new("c++").arg("--version")) {
        return Outcome::skipped("no C++ compiler installed, which libFuzzer needs");
    }
    // With a target, so that what runs while it is built is built without the flags.
    build.args(["build", "--profile", how.profile, "--manifest-path", MANIFEST]);
    build.args(["--target", &host, "--target-dir", how.folder]);
    for name in names {
        build.args(["--bin", name]);
    }
    // Other flags stay.
    let mut flags = vec![sanitize::ADDRESS_FLAGS.to_owned()];
    flags.extend(how.flags.iter().map(|&flag| flag.to_owned()));
    flags.extend(env::var("RUSTFLAGS"));
    build.env("RUSTFLAGS", flags.join(" "));
    shell::run(&mut build)?;
    let programs: PathBuf = [how.folder, &host, how.profile_folder].iter().collect();
    let mut steps = Steps::new(how.title, names.len());
    for name in names {
        steps.step(name, || run(&programs.join(name), name));
    }
    steps.finish()?;
    Ok(Outcome::Passed)
}

/// A target's program.
fn fuzzer(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-timeout=20", "-rss_limit_mb=4096"]);
    // Programs ask for absurd sizes, and end with memory that was lent for ever.
    default_env(
        &mut command,
        "ASAN_OPTIONS",
        "allocator_may_return_null=1:detect_leaks=0:detect_odr_violation=0",
    );
    command
}

#[cfg(test)]
mod tests {
    use super::{executed, replayed};

    #[test]
    fn executions_are_read() {
        let text = "Done 12 runs\nstat::number_of_executed_units: 8123\nstat::average_exec_per_sec:     7\n";
        assert_eq!(executed(text).unwrap(), 8123);
        assert!(executed("cut short").is_err());
    }

    #[test]
    fn inputs_are_counted() {
        assert_eq!(replayed("Running: a\nExecuted a in 1 ms\nRunning: b\n"), 1);
    }
}
