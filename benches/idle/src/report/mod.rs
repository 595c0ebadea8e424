//! What the trials found, for people: tables, charts, and the documents that have them.

pub mod chart;
pub mod page;
pub mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use buftrials::document::{Block, put};

use crate::record::Results;

/// The workspace's documents that have a block of the results.
const DOCUMENT: &str = "docs/idle.md";
const FRONT_PAGE: &str = "README.md";
/// The charts, from [`DOCUMENT`] and from the workspace's root.
const CHARTS: &str = "results";
const FRONT_CHART: &str = "docs/idle.svg";

/// The block that this writes.
const BLOCK: Block = Block::of("idle");

/// Writes the report into `folder`: tables and charts.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    put(&folder.join("idle.md"), &format!("# The morning after\n\n{}", page::block(results, "")))?;
    for (name, drawing) in chart::all(results) {
        put(&folder.join(name), &drawing)?;
    }
    if let Some(drawing) = chart::front(results) {
        put(&folder.join("front.svg"), &drawing)?;
    }
    Ok(())
}

/// Writes the tables and charts into the documents of the workspace at `root`.
///
/// # Errors
///
/// When the results lack something that a document has, or a file cannot be read or written.
pub fn publish(results: &Results, root: &Path) -> Result<()> {
    let drawing = chart::front(results).context("the results lack a line of the front page's chart")?;
    let line = page::front(results, FRONT_CHART).context("the results lack a figure of the front page")?;
    let document = BLOCK.filled(root, DOCUMENT, &page::block(results, &format!("{CHARTS}/")))?;
    let front_page = BLOCK.filled(root, FRONT_PAGE, &line)?;
    for (name, text) in [(DOCUMENT, document), (FRONT_PAGE, front_page)] {
        put(&root.join(name), &text)?;
    }
    put(&root.join(FRONT_CHART), &drawing)?;
    let charts = root.join("docs").join(CHARTS);
    for (name, drawing) in chart::all(results) {
        put(&charts.join(name), &drawing)?;
    }
    Ok(())
}

/// Prints the tables.
pub fn print(results: &Results) {
    for (title, table) in table::all(results) {
        println!("\n{title}\n\n{}", table.plain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents have their blocks, so that a long run does not fail at its end.
    #[test]
    fn documents_have_a_block() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in [DOCUMENT, FRONT_PAGE] {
            assert!(BLOCK.filled(&root, name, "").is_ok(), "{name}");
        }
    }
}
