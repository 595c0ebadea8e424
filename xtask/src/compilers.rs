//! A compiler for a platform: the toolchain's own where it has the platform's library. Or else
//! it is another one that the environment names, which builds the library from the sources beside it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::shell::{self, cargo, command};

/// The variables that name a cargo and its compiler, which have the library's sources.
const CARGO: &str = "XTASK_SOURCE_CARGO";
const RUSTC: &str = "XTASK_SOURCE_RUSTC";

/// Why there is no compiler.
pub(crate) const MISSING: &str = "the toolchain lacks its library (`rustup target add`), and \
    XTASK_SOURCE_CARGO and XTASK_SOURCE_RUSTC name no compiler that builds it (`.ci/env`)";

/// How much of the library is built from source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Library {
    /// `core` and `alloc`.
    Alloc,
    /// The standard library.
    Std,
    /// And what tests are linked with.
    Test,
}

/// The cargo that builds for `platform`, with its options except the command; `None` where this machine has none.
pub(crate) fn cargo_for(platform: &str, library: Library) -> Result<Option<Command>> {
    if has_library(platform)? {
        return Ok(Some(cargo()));
    }
    let (Some(cargo), Some(rustc)) = (env::var_os(CARGO), env::var_os(RUSTC)) else { return Ok(None) };
    let mut command = Command::new(cargo);
    // The variables that the running cargo sets name its own compiler.
    for stale in ["CARGO", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(stale);
    }
    command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
    // Without what prints backtraces, half of which are crates of others.
    command.arg("-Zbuild-std-features=panic-unwind");
    command.arg(match library {
        Library::Alloc => "-Zbuild-std=core,alloc",
        Library::Std => "-Zbuild-std=std,panic_abort",
        Library::Test => "-Zbuild-std=std,panic_unwind,test",
    });
    Ok(Some(command))
}

/// Whether the toolchain comes with the library of `platform`.
pub(crate) fn has_library(platform: &str) -> Result<bool> {
    let folder = shell::output(&mut command!("rustc --print target-libdir --target {platform}"))?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// The linker that the toolchain comes with, which links for all processors.
pub(crate) fn linker() -> Result<PathBuf> {
    let root = shell::output(&mut command!("rustc --print sysroot"))?;
    let host = shell::host_triple()?;
    Ok(Path::new(root.trim()).join("lib/rustlib").join(host).join("bin/rust-lld"))
}

/// The variable by which cargo is told `what` of `platform`, as `LINKER`.
pub(crate) fn variable(platform: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", platform.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn variables_are_named_as_cargo_does() {
        assert_eq!(variable("thumbv7m-none-eabi", "LINKER"), "CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER");
    }
}
