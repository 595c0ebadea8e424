//! `cargo xtask test`: everything that a change has to pass on this machine.

use std::env;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::packages::{self, Package};
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};

/// Buffers per long trial in a short run.
const QUICK_COUNT: &str = "20000";

/// Not in the release build: no trials of pools, and most of what would have to be compiled. `ci bench-test` runs the matrix as
/// it is released.
const DEBUG_ONLY: [&str; 2] = ["bufbench", "xtask"];

/// Options of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Debug tests and documentation only, and short trials.
    #[arg(long)]
    quick: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let quick = self.quick;
        let mut steps = Steps::new("test", if quick { 2 } else { 4 });
        steps.step("tests, debug build", || {
            let mut command = tests(&[]);
            if quick {
                default_env(&mut command, "BUFTEST_COUNT", QUICK_COUNT);
            }
            shell::run_tests(&mut command)?;
            Ok(Outcome::Passed)
        });
        steps.step("examples in the documentation", || {
            shell::run_tests(cargo().args(["test", "--workspace", "--all-features", "--doc"]))?;
            Ok(Outcome::Passed)
        });
        if !quick {
            steps.step("tests, release build, long trials", || {
                let mut command = tests(&["--release"]);
                shell::run_tests(command.args(DEBUG_ONLY.iter().flat_map(|package| ["--exclude", package])))?;
                Ok(Outcome::Passed)
            });
            steps.step("example programs", examples);
        }
        steps.finish()
    }
}

fn tests(more: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    command.args(["--lib", "--bins", "--tests"]).args(more);
    command
}

/// Sets a variable for `command`, if the caller of ours has not.
pub(crate) fn default_env(command: &mut Command, name: &str, value: &str) {
    if env::var_os(name).is_none() {
        command.env(name, value);
    }
}

/// Runs every example of the published packages. They take no arguments, and end by themselves.
fn examples() -> Result<Outcome> {
    let packages = packages::published()?;
    for package in &packages {
        for example in package.examples() {
            shell::run(&mut run_example(package, example))?;
        }
    }
    let count: usize = packages.iter().map(|package| package.examples().count()).sum();
    if count == 0 {
        return Outcome::skipped("no published package has an example");
    }
    println!("example programs: {count} ran to their end");
    Ok(Outcome::Passed)
}

fn run_example(package: &Package, example: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--all-features", "--package", &package.name]);
    command.args(["--example", example]);
    command
}

/// Fails unless the output of `cargo test` says that at least one test ran.
pub(crate) fn some_ran(output: &str) -> Result<()> {
    let ran = |line: &str| {
        let counts = line.strip_prefix("test result: ok. ")?;
        counts.split_whitespace().next()?.parse::<u64>().ok()
    };
    let total: u64 = output.lines().filter_map(ran).sum();
    ensure!(total > 0, "no test ran");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::some_ran;

    #[test]
    fn a_run_of_no_tests_is_a_failure() {
        let line =
            |count| format!("\ntest result: ok. {count} passed; 0 failed; 0 ignored; 9 filtered out\n");
        assert!(some_ran(&line(0)).is_err());
        assert!(some_ran("").is_err());
        assert!(some_ran(&(line(0) + &line(3))).is_ok());
    }
}
