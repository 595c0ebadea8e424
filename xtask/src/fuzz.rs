//! `cargo xtask fuzz`: the fuzz targets in `fuzz`, with libFuzzer and AddressSanitizer.
//!
//! Built with the flags that cargo-fuzz sets, so that nothing but a nightly toolchain and a C++ compiler is needed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::shell;
use crate::steps::{Outcome, Steps};
use crate::test::default_env;

const MANIFEST: &str = "fuzz/Cargo.toml";
/// A file for each target.
const TARGETS: &str = "fuzz/fuzz_targets";
/// A folder of inputs for each target, which are checked in.
const CORPORA: &str = "fuzz/corpus";
/// A file for each target that has one: words that libFuzzer puts into its inputs.
const WORDS: &str = "fuzz/words";
/// Where it is built, and where what a run finds is kept.
const BUILT: &str = "target/fuzz";

/// Counters on every edge, comparisons that libFuzzer learns from, and AddressSanitizer.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Zsanitizer=address",
    "-Cunsafe-allow-abi-mismatch=sanitizer",
];

/// Longer runs are of several processes, one after the other: AddressSanitizer has only so many threads for each.
const PART_SECONDS: u32 = 600;

/// No input is longer, in bytes.
const MAX_BYTES: usize = 2000;

/// Options of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; all unless some are named.
    targets: Vec<String>,
    /// How long each runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run what is checked in once, and nothing else.
    #[arg(long)]
    replay: bool,
    /// Print the names of the targets.
    #[arg(long)]
    list: bool,
    /// Fail where no nightly toolchain is installed, instead of skipping.
    #[arg(long)]
    strict: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let all = names()?;
        if self.list {
            all.iter().for_each(|name| println!("{name}"));
            return Ok(());
        }
        for name in &self.targets {
            ensure!(all.contains(name), "no fuzz target `{name}`: there are {}", all.join(", "));
        }
        let chosen = if self.targets.is_empty() { all } else { self.targets };
        let outcome = if self.replay { replay_each(&chosen)? } else { run_each(&chosen, self.seconds)? };
        match outcome {
            Outcome::Skipped(reason) if self.strict => bail!("{reason}"),
            Outcome::Skipped(reason) => println!("skipped: {reason}"),
            Outcome::Passed => {}
        }
        Ok(())
    }
}

/// Runs all that is checked in once.
#[allow(dead_code, reason = "for a job of continuous integration")]
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
    each(names, "replay", |program, name| {
        let corpus = Path::new(CORPORA).join(name);
        let inputs = fs::read_dir(&corpus).map_or(0, Iterator::count);
        if inputs == 0 {
            return Outcome::skipped(format!("nothing in {}", corpus.display()));
        }
        let mut command = fuzzer(program);
        // None but those of the folder.
        command.arg("-runs=0").arg(corpus);
        shell::run_tests(&mut command)?;
        Ok(Outcome::Passed)
    })
}

fn run_each(names: &[String], seconds: u32) -> Result<Outcome> {
    each(names, "fuzz", |program, name| {
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
            // What is new goes to the first; what is checked in is read as well.
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

/// Builds the targets, and runs each.
fn each(
    names: &[String],
    title: &'static str,
    run: impl Fn(&Path, &str) -> Result<Outcome>,
) -> Result<Outcome> {
    let Some(mut build) = shell::cargo_of("nightly") else {
        return Outcome::skipped("no nightly toolchain installed");
    };
    let host = shell::host_triple()?;
    if !(host.starts_with("x86_64-") || host.starts_with("aarch64-")) || !host.ends_with("-linux-gnu") {
        return Outcome::skipped(format!("no sanitizers for {host}"));
    }
    if !shell::works(Command::new("c++").arg("--version")) {
        return Outcome::skipped("no C++ compiler, in which libFuzzer is written");
    }
    // With a target, so that what runs while it is built is built without the flags.
    build.args(["build", "--release", "--manifest-path", MANIFEST, "--target", &host, "--target-dir", BUILT]);
    for name in names {
        build.args(["--bin", name]);
    }
    // Other flags stay: that a target finds a known defect is shown this way.
    let others = env::var("RUSTFLAGS").unwrap_or_default();
    build.env("RUSTFLAGS", format!("{others} {}", FLAGS.join(" ")).trim());
    shell::run(&mut build)?;
    let programs: PathBuf = [BUILT, &host, "release"].iter().collect();
    let mut steps = Steps::new(title, names.len());
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
    use super::executed;

    #[test]
    fn executions_are_read() {
        let text = "Done 12 runs\nstat::number_of_executed_units: 8123\nstat::average_exec_per_sec:     7\n";
        assert_eq!(executed(text).unwrap(), 8123);
        assert!(executed("cut short").is_err());
    }
}
