//! `cargo xtask advise`: builds `bufadvise` and has it say which strategy fits a trace. All measuring is `bufadvise`'s.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::shell::{self, command};

/// The trace that the command is tried with.
const SHIPPED: &str = "benches/traces/redis.buftrace";

/// Options of `advise`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The recorded trace: a file that `buftrace`'s recorder wrote
    trace: PathBuf,
    /// Options of `bufadvise advise`, such as --seconds 30 or --json; --page is target/advice.html unless set
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    more: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        // As a program is built unless it says otherwise, and as the traces' own program was: without link-time optimisation, which would
        // take minutes.
        let mut command = command(&build("release")?, &self.trace);
        if !self.more.iter().any(|option| option.starts_with("--page")) {
            command.args(["--page", "target/advice.html"]);
        }
        shell::run(command.args(&self.more))
    }
}

/// Runs all of it once, not optimised, without timing anything for long: the part of `bench --test`.
pub(crate) fn test() -> Result<()> {
    let mut command = command(&build("dev")?, Path::new(SHIPPED));
    shell::run(command.arg("--test").arg("--page").arg(shell::target_folder().join("advice-test.html")))
}

/// Builds `bufadvise`, and says where it is.
fn build(profile: &str) -> Result<PathBuf> {
    shell::run(&mut command!("cargo build --package bufadvise --bin bufadvise --profile {profile}"))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let name = format!("bufadvise{}", std::env::consts::EXE_SUFFIX);
    Ok(shell::target_folder().join(folder).join(name))
}

/// `bufadvise advise`.
fn command(program: &Path, trace: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("advise").arg(trace);
    command
}
