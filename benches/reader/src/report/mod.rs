//! What was measured, for people: tables, a chart, and the document that has them.

pub mod chart;
pub mod table;

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use buftrials::document::{Block, put};
use buftrials::mark;

use crate::marks;
use crate::plan::{Results, Scale};

/// The workspace's document, and its chart.
const DOCUMENT: &str = "docs/reader.md";
const CHART: &str = "reader.svg";

/// The block that this writes.
const BLOCK: Block = Block::of("reader");

/// Writes the report into `folder`.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    put(&folder.join("reader.md"), &format!("# Reading large files\n\n{}", block(results)))?;
    put(&folder.join(CHART), &chart::draw(results).unwrap_or_default())
}

/// Writes the figures into the document of the workspace at `root`.
///
/// # Errors
///
/// When it cannot be read or written, or has no block for figures.
pub fn publish(results: &Results, root: &Path) -> Result<()> {
    let text = BLOCK.filled(root, DOCUMENT, &block(results))?;
    let drawing = chart::draw(results).context("the results lack what the chart shows")?;
    put(&root.join(DOCUMENT), &text)?;
    put(&root.join("docs").join(CHART), &drawing)
}

/// The machine, the chart, the tables, and what has to hold, in Markdown.
fn block(results: &Results) -> String {
    let host = &results.host;
    let mut text = format!(
        "- processor: {}, {} cores\n- kernel: {}\n- compiler: {}\n- commit: {}\n- date: {}\n- rounds: {}{}\n",
        host.cpu,
        host.cores,
        host.kernel,
        host.rustc,
        host.commit,
        host.date,
        results.rounds,
        if results.scale == Scale::Full { "" } else { ", of the rows that the marks need" },
    );
    // Writing to a string does not fail.
    let _ = write!(text, "\n![Processor time of reads past the page cache]({CHART})\n");
    for (title, table) in table::all(results) {
        let _ = write!(text, "\n### {title}\n\n{}", table.markdown());
    }
    let marks = mark::table(&marks::all(results));
    let _ = write!(text, "\n### What has to hold\n\n{}", marks.markdown());
    text
}

/// Prints the tables.
pub fn print(results: &Results) {
    for (title, table) in table::all(results) {
        println!("\n{title}\n{}", table.plain());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a long run does not fail at its end.
    #[test]
    fn the_document_has_a_block() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(BLOCK.filled(&root, DOCUMENT, "").is_ok());
    }
}
