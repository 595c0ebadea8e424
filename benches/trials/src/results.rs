//! Results as JSON, in a report's folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The name of the file.
const FILE: &str = "results.json";

/// Writes results into `folder`, which is created where it is missing.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(results: &impl Serialize, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(FILE);
    let text = serde_json::to_string(results)?;
    fs::write(&path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// Reads results from `folder`.
///
/// # Errors
///
/// When the file cannot be read, or has other results.
pub fn read<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
}

/// Runs a whole program with a little of each engine, and returns its results; for tests.
///
/// # Panics
///
/// Panics with what the program said, if it fails, and if one of `files` of its report is not there.
#[must_use]
pub fn of_tiny_run<T: DeserializeOwned>(program: &str, args: &[&str], out: &Path, files: &[&str]) -> T {
    let mut command = Command::new(program);
    let run = command.args(["run", "--test"]).args(args).arg("--out").arg(out).output().expect("it starts");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !errors.contains("connection lost"), "{program}: {errors}");
    for file in files {
        assert!(out.join(file).metadata().is_ok_and(|file| file.len() > 100), "{program} wrote no {file}");
    }
    read(out).expect("results")
}
