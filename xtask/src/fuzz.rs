//! `cargo xtask fuzz`: the fuzz targets in `testing/fuzz`, with libFuzzer and AddressSanitizer, run by cargo-fuzz.
//!
//! The replay needs no counters of cargo-fuzz's: it builds as `sanitize` does, in the same folder, and so finds the libraries of others
//! built.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sanitize;
use crate::shell;
use crate::steps::{Outcome, Steps};
use crate::test::default_env;
use crate::tools;

pub(crate) const MANIFEST: &str = "testing/fuzz/Cargo.toml";
/// A file for each target.
const TARGETS: &str = "testing/fuzz/fuzz_targets";
/// A folder of inputs for each target, which are checked in.
const CORPORA: &str = "testing/fuzz/corpus";
/// A file for each target that has one: words that libFuzzer puts into its inputs.
const WORDS: &str = "testing/fuzz/words";
/// Where it is built, and where what a run finds is kept.
const BUILT: &str = "target/fuzz";

/// The version of cargo-fuzz that is built where none is installed.
const CARGO_FUZZ: &str = "0.13.2";
/// How programs treat what libFuzzer gives them: what hangs or takes all memory is a failure.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=4096"];

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
        outcome.map(Outcome::report)
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
    if let Some(reason) = missing()? {
        return Outcome::skipped(reason);
    }
    let mut build = nightly("cargo")?;
    // With a target, so that what runs while it is built is built without the flags.
    let host = shell::host_triple()?;
    build.args(["build", "--manifest-path", MANIFEST, "--target", &host]);
    build.args(["--target-dir", sanitize::ADDRESS_FOLDER]);
    build.args(names.iter().flat_map(|name| ["--bin", name]));
    // Other flags stay.
    let others = env::var("RUSTFLAGS").unwrap_or_default();
    shell::run(build.env("RUSTFLAGS", format!("{} {others}", sanitize::ADDRESS_FLAGS).trim()))?;
    let programs: PathBuf = [sanitize::ADDRESS_FOLDER, &host, "debug"].iter().collect();
    let mut steps = Steps::new("replay", names.len());
    for name in names {
        steps.step(name, || {
            let corpus = Path::new(CORPORA).join(name);
            let files = fs::read_dir(&corpus).with_context(|| format!("cannot list {}", corpus.display()))?;
            let mut inputs = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
            inputs.sort();
            ensure!(!inputs.is_empty(), "{} has no inputs", corpus.display());
            let mut command = Command::new(programs.join(name));
            // Files instead of their folder: libFuzzer refuses to learn from a program without counters.
            set_options(command.args(LIMITS).args(&inputs));
            let ran = replayed(&shell::run_tests(&mut command)?);
            ensure!(ran == inputs.len(), "{ran} of {} inputs ran", inputs.len());
            Ok(Outcome::Passed)
        });
    }
    steps.finish()?;
    Ok(Outcome::Passed)
}

fn run_each(names: &[String], seconds: u32) -> Result<Outcome> {
    if let Some(reason) = missing()? {
        return Outcome::skipped(reason);
    }
    let program = tools::installed("cargo-fuzz", CARGO_FUZZ)?;
    let mut steps = Steps::new("fuzz", names.len());
    for name in names {
        steps.step(name, || {
            let [found, failed] = ["corpus", "failed"].map(|kind| Path::new(BUILT).join(kind).join(name));
            for folder in [&found, &failed] {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            let mut left = seconds;
            while left > 0 {
                let part = left.min(PART_SECONDS);
                left -= part;
                let mut command = nightly(&program)?;
                command.args(["run", "--fuzz-dir", "testing/fuzz", "--target-dir", BUILT, name]);
                // New inputs go to the first; inputs that are checked in are read as well.
                command.arg(&found).arg(Path::new(CORPORA).join(name)).arg("--").args(LIMITS);
                command.arg(format!("-max_total_time={part}")).arg(format!("-max_len={MAX_BYTES}"));
                command.arg(format!("-artifact_prefix={}/", failed.display()));
                let words = Path::new(WORDS).join(name);
                if words.is_file() {
                    command.arg(format!("-dict={}", words.display()));
                }
                set_options(&mut command);
                shell::run(&mut command)?;
            }
            Ok(Outcome::Passed)
        });
    }
    steps.finish()?;
    Ok(Outcome::Passed)
}

/// A program with the nightly toolchain, which [`missing`] has found.
fn nightly(program: impl AsRef<OsStr>) -> Result<Command> {
    shell::with_toolchain("nightly", program).context("no nightly toolchain installed")
}

/// What this machine lacks to run targets.
fn missing() -> Result<Option<String>> {
    let host = shell::host_triple()?;
    let lacks = [
        (shell::cargo_of("nightly").is_some(), "no nightly toolchain installed".to_owned()),
        (sanitize::is_possible(&host), format!("no sanitizers for {host}")),
        (
            shell::works(Command::new("c++").arg("--version")),
            "no C++ compiler installed, which libFuzzer needs".to_owned(),
        ),
    ];
    Ok(lacks.into_iter().find(|lack| !lack.0).map(|lack| lack.1))
}

/// Programs ask for absurd sizes, and end with memory that was lent for ever.
fn set_options(command: &mut Command) {
    let options = "allocator_may_return_null=1:detect_leaks=0:detect_odr_violation=0";
    default_env(command, "ASAN_OPTIONS", options);
}

/// How many inputs libFuzzer says that it ran, of those that were named.
fn replayed(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("Executed ")).count()
}

#[cfg(test)]
mod tests {
    use super::replayed;

    #[test]
    fn inputs_are_counted() {
        assert_eq!(replayed("Running: a\nExecuted a in 1 ms\nRunning: b\n"), 1);
    }
}
