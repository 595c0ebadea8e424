//! `cargo xtask loom` and `cargo xtask shuttle`: the models in `src/tests` of each package, in every interleaving or in schedules that
//! are drawn.

use std::env;

use anyhow::{Result, ensure};

use crate::packages::{self, Package};
use crate::shell::{self, cargo};
use crate::test::{default_env, some_ran};

/// A model checker.
#[derive(Debug)]
pub(crate) struct Checker {
    /// Its `cfg`, and what the names of its models begin with.
    pub(crate) name: &'static str,
    /// Where packages may have their models.
    files: &'static [&'static str],
    /// Where models are built: everything has the flag.
    pub(crate) target_dir: &'static str,
    /// How much it does.
    pub(crate) variable: &'static str,
    pub(crate) unless_set: &'static str,
}

/// Every interleaving of this number of preemptions; what is known of such bugs needs two at most. (Three take sixty times as long.)
pub(crate) const LOOM: Checker = Checker {
    name: "loom",
    files: &["src/tests/loom.rs", "src/loom.rs"],
    target_dir: "target/loom",
    variable: "LOOM_MAX_PREEMPTIONS",
    unless_set: "2",
};

/// The number of seconds for each model and kind of schedule; all of them together take less than a minute.
pub(crate) const SHUTTLE: Checker = Checker {
    name: "shuttle",
    files: &["src/tests/shuttle.rs"],
    target_dir: "target/shuttle",
    variable: "SHUTTLE_SECONDS",
    unless_set: "2",
};

impl Checker {
    /// Whether a package has models for it.
    pub(crate) fn has_models(&self, package: &Package) -> bool {
        self.files.iter().any(|file| package.folder.join(file).is_file())
    }

    /// Runs all models.
    pub(crate) fn check(&self) -> Result<()> {
        let mut packages = packages::published()?;
        packages.retain(|package| self.has_models(package));
        ensure!(!packages.is_empty(), "no package has models in {}", self.files[0]);
        for package in packages {
            let mut command = cargo();
            // Optimised, because there is much to run; the models' own assertions stay.
            command.args(["test", "--release", "--target-dir", self.target_dir]);
            command.args(["--package", &package.name, "--lib", self.name]);
            // Other flags stay.
            let flags = env::var("RUSTFLAGS").unwrap_or_default();
            command.env("RUSTFLAGS", format!("{flags} --cfg {}", self.name).trim());
            default_env(&mut command, self.variable, self.unless_set);
            some_ran(&shell::run_tests(&mut command)?)?;
        }
        Ok(())
    }
}
