//! `cargo xtask reader`: builds the reader of large files and runs it. All measuring and reporting is `bufreader`'s.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell::{self, command};
use crate::trials::Trials;

/// Built as a user's release is, and sooner.
const PROFILE: &str = "quick";

/// Options of `reader`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run what the marks need, in minutes.
    #[arg(long)]
    quick: bool,
    /// Run with a small file, to see that all of it works.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// The number of turns of each cell [default: 3, test: 1].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run only these contestants, such as `aligned,slot`.
    #[arg(long, short, value_delimiter = ',', value_name = "C")]
    contestant: Vec<String>,
    /// The folder that the report is written to, and the file of 500 MiB. It is on a disk.
    #[arg(long, default_value = "target/reader-report", value_name = "DIR")]
    out: PathBuf,
    /// Fail if something does not hold that has to.
    #[arg(long, conflicts_with = "test")]
    check: bool,
    /// Only build it.
    #[arg(long)]
    no_run: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(cfg!(target_os = "linux"), "io_uring is Linux' own");
        shell::run(&mut command!(
            "cargo build --package bufreader --profile {PROFILE} --bins --features peers"
        ))?;
        if self.no_run { Ok(()) } else { shell::run(&mut self.command()) }
    }

    /// The program's own command line.
    fn command(&self) -> Command {
        let flags = [("--quick", self.quick), ("--test", self.test), ("--check", self.check)];
        Trials {
            program: "bufreader",
            profile: PROFILE,
            flags: &flags,
            rounds: self.rounds,
            contestants: &self.contestant,
            out: &self.out,
        }
        .command()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn options_are_passed_on() {
        let words = ["reader", "--quick", "--check", "--rounds", "2", "-c", "aligned,slot", "--out", "a b"];
        let command = Line::parse_from(words).args.command();
        let passed: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let expected = "run --quick --check --rounds 2 --contestant aligned --contestant slot --out a b";
        assert_eq!(passed.join(" "), expected);
    }
}
