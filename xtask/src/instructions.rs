//! `cargo xtask bench --instructions`: counts instructions per operation and compares them with what is written down.
//!
//! Gungraun runs the bench target `instructions` under callgrind. Its library and its runner, a program of its own, have to be of
//! one version: the one that the benchmarks' manifest names.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::packages;
use crate::shell::{self, command};
use crate::steps::Outcome;
use crate::tools;

/// The package that has the bench target.
const PACKAGE: &str = "bufcount";
/// What is written down.
const BASELINE: &str = "benches/instructions/instructions.json";

/// Counts, and fails where an operation costs more than is written down; with `update`, writes it down instead.
pub(crate) fn run(update: bool) -> Result<()> {
    match check(update)? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => bail!("{reason}"),
    }
}

/// The same; skipped where there is no valgrind.
pub(crate) fn check(update: bool) -> Result<Outcome> {
    if !shell::works(Command::new("valgrind").arg("--version")) {
        return Outcome::skipped("valgrind is not installed");
    }
    let folder = shell::target_folder();
    let runner = tools::installed("gungraun-runner", &version(&packages::all()?)?)?;
    let home = std::path::absolute(folder.join("gungraun"))?;
    let mut count = command!(
        "cargo bench --package {PACKAGE} --features callgrind --bench instructions
         -- --output-format=json --home {home}"
    );
    let text = shell::output(count.env("GUNGRAUN_RUNNER", runner))?;
    let summaries = folder.join("instructions.jsonl");
    fs::write(&summaries, text).with_context(|| format!("cannot write {}", summaries.display()))?;
    // Not optimised: it only reads.
    let update = update.then_some("--update");
    shell::run(&mut command!(
        "cargo run --package {PACKAGE} --bin {PACKAGE} --
         --summaries {summaries} --baseline {BASELINE} {update...}"
    ))?;
    Ok(Outcome::Passed)
}

/// The exact version of gungraun that the benchmarks depend on.
fn version(packages: &[packages::Package]) -> Result<String> {
    packages
        .iter()
        .filter(|package| package.name == PACKAGE)
        .flat_map(|package| &package.dependencies)
        .find(|dependency| dependency.name == "gungraun")
        .and_then(|dependency| dependency.version.strip_prefix('='))
        .map(|version| version.trim().to_owned())
        .with_context(|| format!("{PACKAGE} depends on no exact version of gungraun"))
}
