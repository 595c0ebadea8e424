//! `cargo xtask idle`: builds a server over each allocator and runs the trials of memory after a burst. All measuring and reporting is
//! `bufidle`'s.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell::{self, command};
use crate::trials::Trials;

/// Built as a user's release is, and sooner.
const PROFILE: &str = "quick";

/// Options of `idle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run what the marks need, in two minutes.
    #[arg(long)]
    quick: bool,
    /// Run with a few clients, to see that all of it works.
    #[arg(long, conflicts_with = "quick")]
    test: bool,
    /// The number of turns of each contestant [default: 3, quick: 1].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run only these contestants in the first trial, such as `codec,shard-keeper`.
    #[arg(long, short, value_delimiter = ',', value_name = "C")]
    contestant: Vec<String>,
    /// Run only over these allocators: `glibc`, `jemalloc`, `mimalloc`.
    #[arg(long, short, value_delimiter = ',', value_name = "A")]
    allocator: Vec<String>,
    /// The folder that the report is written to.
    #[arg(long, default_value = "target/idle-report", value_name = "DIR")]
    out: PathBuf,
    /// Fail if something does not hold that has to.
    #[arg(long, conflicts_with = "test")]
    check: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(cfg!(target_os = "linux"), "the memory of a process is read from Linux' /proc");
        let features = self.features().join(",");
        shell::run(&mut command!(
            "cargo build --package bufidle --profile {PROFILE} --bins --features {features}"
        ))?;
        shell::run(&mut self.command())
    }

    /// The allocators that are built from C: those that are asked for.
    fn features(&self) -> Vec<&'static str> {
        let asked = |name: &&str| self.allocator.is_empty() || self.allocator.iter().any(|one| one == name);
        ["jemalloc", "mimalloc"].into_iter().filter(asked).collect()
    }

    /// The program's own command line.
    fn command(&self) -> Command {
        let flags = [("--quick", self.quick), ("--test", self.test), ("--check", self.check)];
        let mut command = Trials {
            program: "bufidle",
            profile: PROFILE,
            flags: &flags,
            rounds: self.rounds,
            contestants: &self.contestant,
            out: &self.out,
        }
        .command();
        for allocator in &self.allocator {
            command.args(["--allocator", allocator]);
        }
        command
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

    fn parsed(words: &[&str]) -> Args {
        Line::parse_from(["idle"].iter().chain(words)).args
    }

    #[test]
    fn only_what_is_asked_for_is_built() {
        assert_eq!(parsed(&[]).features(), ["jemalloc", "mimalloc"]);
        assert_eq!(parsed(&["-a", "glibc,mimalloc"]).features(), ["mimalloc"]);
        assert_eq!(parsed(&["-a", "glibc"]).features(), [""; 0]);
    }

    #[test]
    fn options_are_passed_on() {
        let words =
            ["--quick", "--check", "--rounds", "2", "-c", "codec,shard", "-a", "glibc", "--out", "a b"];
        let command = parsed(&words).command();
        let passed: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let expected = "run --quick --check --rounds 2 --contestant codec --contestant shard --out a b --allocator glibc";
        assert_eq!(passed.join(" "), expected);
        assert!(passed.iter().any(|word| word == "a b"), "one word");
    }
}
