//! `cargo xtask advise`: builds `bufbench` and has it say which strategy fits a trace. All measuring is `bufbench`'s.

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
    /// The seconds that the command may take, about, without the check
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
    /// Replay all candidates longer afterwards, and fail if the choice is not within 5 % of the best
    #[arg(long)]
    check: bool,
    /// The folder that the advice is written to
    #[arg(long, default_value = "target/advise", value_name = "DIR")]
    out: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        // As a program is built unless it says otherwise, and as the traces' own program was: without link-time optimisation, which would
        // take minutes.
        shell::run(&mut command!("cargo build --package bufbench --bin bufbench --release"))?;
        let mut command = command(&self.trace, &self.out);
        command.args(self.json.then_some("--json")).args(self.check.then_some("--check"));
        if let Some(seconds) = self.seconds {
            command.args(["--seconds", &seconds.to_string()]);
        }
        shell::run(&mut command)
    }
}

/// Runs all of it once, without timing anything for long, with the program that is there: the part of `bench --test`.
pub(crate) fn test() -> Result<()> {
    let mut command = command(Path::new(SHIPPED), &shell::target_folder().join("advise-test"));
    shell::run(command.arg("--test"))
}

/// `bufbench advise`.
fn command(trace: &Path, out: &Path) -> Command {
    let program = format!("bufbench{}", std::env::consts::EXE_SUFFIX);
    let mut command = Command::new(shell::target_folder().join("release").join(program));
    command.arg("advise").arg(trace).arg("--out").arg(out);
    command
}
