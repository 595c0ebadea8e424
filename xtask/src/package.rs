//! What would be published: each package is complete, has nothing that it does not need, and builds without what stays here.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::outside;
use crate::packages::{self, Package};
use crate::programs;
use crate::shell::{self, command};

/// What a reader of the package looks for.
const FILES: [&str; 2] = ["README.md", "CHANGELOG.md"];
/// In the root, and the same in every package.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// What is of use in the workspace only.
const UNWANTED: [&str; 2] = ["tests", "benches"];
/// Sources and texts. A larger file is there by mistake.
const MAX_FILE_BYTES: u64 = 128 << 10;

/// Packs all published packages together: cargo builds each against the others as they were packed, in place of a registry.
/// Nothing is fetched.
pub(crate) fn check() -> Result<()> {
    outside::check()?;
    programs::check()?;
    let packages = packages::published()?;
    let chosen = packages.iter().flat_map(|package| ["--package", &package.name]);
    let mut command = command!("cargo package --allow-dirty --offline --all-features {chosen...}");
    #[cfg(unix)]
    command.env("CARGO_HOME", fresh_home().context("cannot set up a home for cargo")?);
    shell::run(&mut command)?;
    for package in &packages {
        contents(package).with_context(|| format!("the package {}", package.name))?;
    }
    println!("package: {} packages build from their packed sources", packages.len());
    Ok(())
}

/// A home for cargo that has all of the real one but the unpacked sources. Those of a package that was packed before are taken for the
/// ones that it has now, as long as its version is the same.
#[cfg(unix)]
fn fresh_home() -> Result<PathBuf> {
    use std::env;

    let real = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().context("no home folder")?.join(".cargo"),
    };
    let home = env::current_dir()?.join(shell::target_folder()).join("package-home");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    for (folder, kept_out) in [("", "registry"), ("registry", "src")] {
        fs::create_dir_all(home.join(folder))?;
        for entry in fs::read_dir(real.join(folder))? {
            let entry = entry?;
            if entry.file_name() != kept_out {
                std::os::unix::fs::symlink(entry.path(), home.join(folder).join(entry.file_name()))?;
            }
        }
    }
    Ok(home)
}

/// Looks at what was packed, where cargo unpacked it to build it.
fn contents(package: &Package) -> Result<()> {
    let folder = shell::target_folder().join(format!("package/{}-{}", package.name, package.version));
    for file in FILES {
        ensure!(folder.join(file).is_file(), "has no {file}");
    }
    for file in LICENSES {
        let packed = fs::read(folder.join(file)).ok();
        ensure!(packed == Some(fs::read(file)?), "has no {file}, as it is in the root");
    }
    for unwanted in UNWANTED {
        ensure!(!folder.join(unwanted).exists(), "has {unwanted}");
    }
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    for file in &files {
        let name = file.strip_prefix(&folder)?.display();
        let bytes = fs::metadata(file)?.len();
        ensure!(bytes <= MAX_FILE_BYTES, "{name} has {bytes} bytes");
        if file.extension() == Some(OsStr::new("rs")) {
            let text = fs::read_to_string(file)?;
            // Unit tests may include what is not packed, as the other tests are not.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for included in included(code) {
                let there = file.parent().is_some_and(|parent| parent.join(included).is_file());
                ensure!(there, "{name} includes {included}, which is not in it");
            }
        }
    }
    Ok(())
}

/// The files that a source includes as text.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => list(&entry.path(), files)?,
            kind if kind.is_file() => files.push(entry.path()),
            _ => bail!("{} is neither a file nor a folder", entry.path().display()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::included;

    #[test]
    fn included_texts_are_found() {
        let text =
            "#[doc = include_str!(\"../README.md\")]\nstruct A;\nconst B: &str = include_str!(\"b.txt\");\n";
        assert_eq!(included(text).collect::<Vec<_>>(), ["../README.md", "b.txt"]);
    }
}
