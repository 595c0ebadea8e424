//! What the trials found, for people: tables, charts, and the documents that have them.

pub mod chart;
pub mod page;
pub mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::marks;
use crate::record::Results;

/// The workspace's documents that have a block of the results.
const DOCUMENT: &str = "docs/idle.md";
const FRONT_PAGE: &str = "README.md";
/// The charts, from [`DOCUMENT`] and from the workspace's root.
const CHARTS: &str = "results";
const FRONT_CHART: &str = "docs/idle.svg";

/// The lines around a block that this writes.
const BEGIN: &str = "<!-- figures of `cargo xtask idle`: begin -->";
const END: &str = "<!-- figures of `cargo xtask idle`: end -->";

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
    let read = |name: &str| {
        let path = root.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let drawing = chart::front(results).context("the results lack a line of the front page's chart")?;
    let line = page::front(results, FRONT_CHART).context("the results lack a figure of the front page")?;
    let document = fill(&read(DOCUMENT)?, &page::block(results, &format!("{CHARTS}/")));
    let front_page = fill(&read(FRONT_PAGE)?, &line);
    for (name, text) in [(DOCUMENT, document), (FRONT_PAGE, front_page)] {
        put(&root.join(name), &text.with_context(|| format!("{name} has no block for figures"))?)?;
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

/// Prints what has to hold, and whether it does.
///
/// # Errors
///
/// When something does not hold, if that is to be `checked`.
pub fn judge(results: &Results, checked: bool) -> Result<()> {
    let marks = marks::all(results);
    println!("\n{}", table::of_marks(&marks).plain());
    let failed: Vec<&str> = marks.iter().filter(|mark| !mark.holds).map(|mark| mark.what.as_str()).collect();
    ensure!(!checked || failed.is_empty(), "{} do not hold:\n  {}", failed.len(), failed.join("\n  "));
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// `text` with `block` between its two lines; `None` without these lines.
fn fill(text: &str, block: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", block.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_filled_and_filled_again() {
        let text = format!("# A\n\n{BEGIN}\n{END}\n\nMore.\n");
        let once = fill(&text, "one\n").unwrap();
        assert_eq!(once, format!("# A\n\n{BEGIN}\n\none\n\n{END}\n\nMore.\n"));
        assert_eq!(fill(&once, "one").unwrap(), once);
        assert_eq!(fill("# A\n", "one"), None);
    }

    /// The documents have their blocks, so that a long run does not fail at its end.
    #[test]
    fn documents_have_a_block() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in [DOCUMENT, FRONT_PAGE] {
            let text = fs::read_to_string(root.join(name)).unwrap();
            assert!(fill(&text, "").is_some(), "{name}");
        }
    }
}
