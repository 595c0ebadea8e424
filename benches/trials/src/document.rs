//! Documents with a block of figures, between two lines.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The block that a command writes.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    command: &'static str,
}

impl Block {
    /// Names the block of `cargo xtask command`.
    #[must_use]
    pub const fn of(command: &'static str) -> Self {
        Self { command }
    }

    /// Returns `text` with `figures` between its two lines; `None` without these lines.
    #[must_use]
    pub fn fill(self, text: &str, figures: &str) -> Option<String> {
        let line = |end| format!("<!-- figures of `cargo xtask {}`: {end} -->", self.command);
        let (begin, end) = (line("begin"), line("end"));
        let (before, rest) = text.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", figures.trim_end()))
    }

    /// Returns the text of the document `name` in the workspace at `root`, with `figures` in it.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or has no such block.
    pub fn filled(self, root: &Path, name: &str, figures: &str) -> Result<String> {
        let path = root.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        self.fill(&text, figures).with_context(|| format!("{name} has no block for figures"))
    }
}

/// Writes a file.
///
/// # Errors
///
/// When it cannot be written.
pub fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_filled_and_filled_again() {
        let (begin, end) =
            ("<!-- figures of `cargo xtask a`: begin -->", "<!-- figures of `cargo xtask a`: end -->");
        let block = Block::of("a");
        let once = block.fill(&format!("# A\n\n{begin}\n{end}\n\nMore.\n"), "one\n").unwrap();
        assert_eq!(once, format!("# A\n\n{begin}\n\none\n\n{end}\n\nMore.\n"));
        assert_eq!(block.fill(&once, "one").unwrap(), once);
        assert_eq!(block.fill("# A\n", "one"), None);
        assert_eq!(Block::of("b").fill(&once, "one"), None);
    }
}
