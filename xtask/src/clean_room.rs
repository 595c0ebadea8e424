//! `cargo xtask ci clean-room`: the README's test command as a newcomer runs it, in a fresh clone on a
//! machine that has nothing but what the README asks for.
//!
//! How such a machine is made depends on the system. The variable `XTASK_CLEAN_ROOM` names a program that
//! makes one of this machine and runs the command that it is given; with `--check` it says whether
//! it can. For Debian that is `.ci/clean-room`.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{self, command};
use crate::steps::Outcome;

/// The variable that names the program.
const VARIABLE: &str = "XTASK_CLEAN_ROOM";

/// Whether the surroundings can be made here, or why not.
pub(crate) fn possible() -> Result<Outcome> {
    let Some(program) = env::var_os(VARIABLE) else {
        return Outcome::skipped(format!(
            "{VARIABLE} names no program that makes such a machine (`.ci/env`)"
        ));
    };
    let check = Command::new(&program).arg("--check").output();
    let check = check.with_context(|| format!("cannot start {}", program.display()))?;
    if !check.status.success() {
        return Outcome::skipped(String::from_utf8_lossy(&check.stdout).trim());
    }
    Ok(Outcome::Passed)
}

/// Makes the surroundings and runs the command in them.
pub(crate) fn run() -> Result<Outcome> {
    if let Outcome::Skipped(reason) = possible()? {
        return Outcome::skipped(reason);
    }
    let program = env::var_os(VARIABLE).context("it was there a moment ago")?;
    shell::run(&mut command!("{program} cargo xtask test"))?;
    Ok(Outcome::Passed)
}
