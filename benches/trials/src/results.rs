//! Results as JSON, in a report's folder.

use std::fs;
use std::path::Path;

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
