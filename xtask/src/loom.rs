//! `cargo xtask loom`: the models, `src/tests/loom.rs` of each package, in every interleaving.

use std::env;

use anyhow::{Result, bail};

use crate::packages;
use crate::shell::{self, cargo};
use crate::test::{default_env, some_ran};

/// Preemptions per execution; what is known of such bugs needs two at most.
const PREEMPTIONS: &str = "3";

/// Options of `loom`.
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
    packages.retain(|package| {
        ["src/tests/loom.rs", "src/loom.rs"].iter().any(|file| package.folder.join(file).is_file())
    });
    if packages.is_empty() {
        bail!("no package has models in src/tests/loom.rs");
    }
    for package in packages {
        let mut command = cargo();
        // Optimised, because there are many interleavings; the models' own assertions stay.
        command.args(["test", "--release", "--target-dir", "target/loom"]);
        command.args(["--package", &package.name, "--lib", "loom"]);
        // Other flags stay: a build with a known defect is shown to fail this way.
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{flags} --cfg loom").trim());
        default_env(&mut command, "LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
        some_ran(&shell::run_tests(&mut command)?)?;
    }
    Ok(())
}
