//! `cargo xtask idle`, `reader` and `serve`: builds a program of measurements as a user's release is, and passes its options on.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell::{self, command};

/// Built as a user's release is, and sooner.
const PROFILE: &str = "quick";

/// Options of such a program.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Options of the program: --quick, --test, --rounds N, --engine E, --out DIR, --check; `-- --help` lists all
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

impl Args {
    /// Builds the programs of `package` with the features that bring the crates it compares, and runs the one of its name.
    pub(crate) fn run(self, package: &str, features: &str) -> Result<()> {
        ensure!(cfg!(target_os = "linux"), "memory and reads are measured by what Linux offers");
        shell::run(&mut command!(
            "cargo build --package {package} --profile {PROFILE} --bins --features {features}"
        ))?;
        let program = shell::target_folder().join(PROFILE).join(package);
        let mut command = Command::new(program);
        command.arg("run").args(&self.options);
        if !self.options.iter().any(|option| option.starts_with("--out")) {
            command.arg("--out").arg(shell::target_folder().join(format!("{package}-report")));
        }
        shell::run(&mut command)
    }
}
