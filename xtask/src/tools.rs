//! Programs from the registry that commands call. Each is built once, in the version that is asked for.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{self, command};

/// The variable that names a folder for tools that all clones share.
const FOLDER: &str = "XTASK_TOOLS";

/// The program `name` in this version, which is built if it is not there yet.
pub(crate) fn installed(name: &str, version: &str) -> Result<PathBuf> {
    let folder = env::var_os(FOLDER).map_or_else(shell::target_folder, PathBuf::from);
    let root = folder.join(name).join(version);
    let program = root.join("bin").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    if !program.is_file() {
        // Not optimised: it starts other programs, and waits for them.
        let mut install = command!("cargo install --debug --locked {name} --version {version} --root {root}");
        shell::run(install.env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    }
    std::path::absolute(&program).with_context(|| format!("cannot find {}", program.display()))
}
