//! The command line of a program of measurements, from the options of the task that runs it.

use std::path::Path;
use std::process::Command;

use crate::shell;

/// What such programs have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trials<'a> {
    /// The program, which is that of the package.
    pub(crate) program: &'a str,
    pub(crate) profile: &'a str,
    /// Options without a value, and whether each is given.
    pub(crate) flags: &'a [(&'a str, bool)],
    pub(crate) rounds: Option<usize>,
    pub(crate) contestants: &'a [String],
    pub(crate) out: &'a Path,
}

impl Trials<'_> {
    /// Makes the command that runs the program.
    pub(crate) fn command(self) -> Command {
        let program = format!("{}{}", self.program, std::env::consts::EXE_SUFFIX);
        let mut command = Command::new(shell::target_folder().join(self.profile).join(program));
        command.arg("run");
        command.args(self.flags.iter().filter(|flag| flag.1).map(|flag| flag.0));
        if let Some(rounds) = self.rounds {
            command.args(["--rounds", &rounds.to_string()]);
        }
        for contestant in self.contestants {
            command.args(["--contestant", contestant]);
        }
        command.arg("--out").arg(self.out);
        command
    }
}
