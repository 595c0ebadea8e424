//! `cargo xtask stress MINUTES`: long programs under load, `tests/stress.rs` of each package, with what they check.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::packages;
use crate::programs::{self, Program};
use crate::sanitize::Sanitizer;
use crate::shell::{self, command};
use crate::steps::{Outcome, Steps};

/// The test target that such programs are.
const TARGET: &str = "stress";
/// Apart from other release builds, which other jobs run beside it.
const TARGET_DIR: &str = "target/stress";

/// Options of `stress`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The minutes in all, without the build; a fraction will do.
    minutes: f64,
    /// Run only the program of this package; without any, all programs run.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Run only the part of this name, such as `budget`; each program prints the names of its parts.
    #[arg(long, requires = "package")]
    part: Option<String>,
    /// The seed of the first round, as a failure printed it.
    #[arg(long)]
    seed: Option<String>,
    /// Run under the nightly's ThreadSanitizer: slower, and without the map of addresses.
    #[arg(long)]
    thread_sanitizer: bool,
}

impl Args {
    /// Runs all programs, for the same time each: half of it with the default features and half with all of them. Counters and
    /// trackers order threads that nothing orders by default, but they count.
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.minutes > 0.0 && self.minutes.is_finite(), "a number of minutes");
        let all = packages::published()?;
        let mut packages: Vec<_> = all.iter().filter(|package| package.test(TARGET).is_some()).collect();
        if let Some(name) = self.package.iter().find(|name| packages.iter().all(|one| one.name != **name)) {
            bail!("{name} has no tests/{TARGET}.rs");
        }
        packages.retain(|package| self.package.is_empty() || self.package.contains(&package.name));
        let mut runs: Vec<(&str, Program)> = Vec::new();
        for (what, features) in [("default features", None), ("all features", Some("--all-features"))] {
            let mut command = if self.thread_sanitizer {
                Sanitizer::Thread.cargo_test(&shell::host_triple()?)?
            } else {
                command!("cargo test --target-dir {TARGET_DIR}")
            };
            // Not a step slower than users have it; the programs' own checks stay.
            command.args(["--release", "--test", TARGET]).args(features);
            command.args(packages.iter().flat_map(|package| ["--package", &package.name]));
            let built = programs::build(&mut command, &all)?;
            runs.extend(built.into_iter().map(|program| (what, program)));
        }
        ensure!(!runs.is_empty(), "no package has tests/{TARGET}.rs");
        let time = Duration::from_secs_f64(60.0 * self.minutes / runs.len() as f64);
        let mut steps = Steps::new("stress", runs.len());
        for (what, program) in &runs {
            steps.step(&format!("{} {what}", program.package), || {
                shell::run(&mut self.command(program, time)?)?;
                Ok(Outcome::Passed)
            });
        }
        steps.finish()
    }

    /// The command that runs a program for `time`.
    fn command(&self, program: &Program, time: Duration) -> Result<Command> {
        let mut command = program.command();
        if let Some(part) = &self.part {
            command.args(["--exact", part]);
        }
        command.env("BUFTEST_STRESS_SECONDS", format!("{:.1}", time.as_secs_f64()));
        if let Some(seed) = &self.seed {
            command.env("BUFTEST_SEED", seed);
        }
        if self.thread_sanitizer {
            command.env("BUFTEST_SANITIZED", "1");
            Sanitizer::Thread.options(&mut command).context("ThreadSanitizer's options")?;
        }
        Ok(command)
    }
}
