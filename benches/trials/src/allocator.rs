//! The allocators that programs have their memory from: a program for each.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What the programs have their memory from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Allocator {
    /// The allocator of the C library.
    Glibc,
    /// jemalloc, through `tikv-jemallocator`.
    Jemalloc,
    /// jemalloc, whose own thread gives idle memory back.
    JemallocThread,
    /// mimalloc.
    Mimalloc,
    /// bufalloc over that of the C library.
    Bufalloc,
}

/// What makes jemalloc start its thread. The prefix is that of `tikv-jemallocator`.
const JEMALLOC_THREAD: (&str, &str) = ("_RJEM_MALLOC_CONF", "background_thread:true");

impl Allocator {
    /// The C allocators without settings, in the order of the report.
    pub fn plain() -> impl Iterator<Item = Self> {
        [Self::Glibc, Self::Jemalloc, Self::Mimalloc].into_iter()
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        crate::run::name_of(&self)
    }

    /// A child of the program over it, beside this program: `name` is that of the program over glibc.
    /// The child is told `task` and `options`.
    ///
    /// # Errors
    ///
    /// When there is no such program.
    pub fn command(self, name: &str, task: &str, options: &impl Serialize) -> Result<Command> {
        let behind = match self {
            Self::Glibc => String::new(),
            Self::JemallocThread => format!("-{}", Self::Jemalloc.name()),
            _ => format!("-{}", self.name()),
        };
        let own = std::env::current_exe().context("a program has a path")?;
        let program = own.with_file_name(format!("{name}{behind}"));
        ensure!(program.is_file(), "{} is missing; `cargo xtask` builds it", program.display());
        let mut command = Command::new(program);
        command.arg(task).arg(serde_json::to_string(options)?);
        if self == Self::JemallocThread {
            command.env(JEMALLOC_THREAD.0, JEMALLOC_THREAD.1);
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named() {
        let error = Allocator::Mimalloc.command("bufnone", "serve", &1).unwrap_err().to_string();
        assert!(error.contains("bufnone-mimalloc is missing"), "{error}");
    }
}
