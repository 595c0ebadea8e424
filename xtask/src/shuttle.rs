//! `cargo xtask shuttle`: the larger models, `src/tests/shuttle.rs` of each package, in schedules that are drawn.

use std::env;

use anyhow::{Result, bail};

use crate::packages;
use crate::shell::{self, cargo};
use crate::test::{default_env, some_ran};

/// Where models are built: everything has the flag.
pub(crate) const TARGET_DIR: &str = "target/shuttle";
/// Seconds that a model gets, for each kind of schedule; all of them together take less than a minute.
const SECONDS: &str = "2";

/// Options of `shuttle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        check()
    }
}

/// Runs all models.
pub(crate) fn check() -> Result<()> {
    let mut packages = packages::published()?;
    packages.retain(|package| package.folder.join("src/tests/shuttle.rs").is_file());
    if packages.is_empty() {
        bail!("no package has models in src/tests/shuttle.rs");
    }
    for package in packages {
        let mut command = cargo();
        // Optimised, because there are many schedules; the models' own assertions stay.
        command.args(["test", "--release", "--target-dir", TARGET_DIR]);
        command.args(["--package", &package.name, "--lib", "shuttle"]);
        // Other flags stay: a build with a known defect is shown to fail this way.
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{flags} --cfg shuttle").trim());
        default_env(&mut command, "SHUTTLE_SECONDS", SECONDS);
        some_ran(&shell::run_tests(&mut command)?)?;
    }
    Ok(())
}
