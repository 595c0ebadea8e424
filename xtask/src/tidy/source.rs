//! The rules for one file.

use std::path::Path;

use super::Finding;
use super::links;
use crate::models::LOOM;
use crate::packages::Package;

/// More lines than this do not fit in one reading.
const MAX_LINES: usize = 800;
/// The same for what users get, which is to be read in one go.
const MAX_PRODUCT_LINES: usize = 500;
/// Where comments wrap in there, in columns.
const MAX_COMMENT_COLUMNS: usize = 100;
/// An atomic's `ORDER` comment stands at most this number of lines above it.
const ORDER_LINES: usize = 6;
const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// What a file is a part of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    /// Of a published package.
    is_product: bool,
    /// Of a package with models, whose checker has to see all atomics.
    is_modelled: bool,
}

impl Part {
    /// That of the sources of `package`.
    pub(super) fn of(package: &Package) -> Self {
        Self { is_product: package.published, is_modelled: LOOM.has_models(package) }
    }
}

/// Checks the file `name` of the workspace.
pub(super) fn check(name: &Path, text: &str, part: Part) -> Vec<Finding> {
    if name.extension().is_some_and(|ending| ending == "md") {
        return links::check(name, text);
    }
    let mut found = links::check_rust(name, text);
    length(text, if part.is_product { MAX_PRODUCT_LINES } else { MAX_LINES }, &mut found);
    // A program that must not compile says what it is for in its name, and its line numbers in what the compiler answers.
    if !name.iter().any(|part| part == "compile_fail") && !text.trim_start().starts_with("//!") {
        found.push(Finding::at(1, "no `//!` that says what the file is for"));
    }
    if part.is_product {
        width(text, &mut found);
        if !name.ends_with("sync.rs") && !name.ends_with("sync/mod.rs") {
            atomics(text, part, &mut found);
        }
    }
    found
}

fn length(text: &str, limit: usize, found: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > limit {
        found.push(Finding::at(0, format!("{lines} lines, over {limit}: split the file")));
    }
}

/// What rustfmt does not do: comments wrap. Tables, examples and addresses cannot.
fn width(text: &str, found: &mut Vec<Finding>) {
    let mut in_example = false;
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        in_example ^= comment.starts_with("```");
        let is_whole = in_example || comment.starts_with(['|', '[']) || comment.contains("://");
        let columns = line.chars().count();
        if columns > MAX_COMMENT_COLUMNS && !is_whole {
            let message = format!("a comment of {columns} columns, over {MAX_COMMENT_COLUMNS}");
            found.push(Finding::at(at + 1, message));
        }
    }
}

/// Each operation says why it has its order, and is one that the checker of the models sees.
fn atomics(text: &str, part: Part, found: &mut Vec<Finding>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut in_use = false;
    for (at, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim_end();
        in_use |= ["use ", "pub use ", "pub(crate) use "].iter().any(|start| code.starts_with(start));
        let is_ordered = ORDERINGS.iter().any(|name| code.contains(&format!("Ordering::{name}")));
        let near = &lines[at.saturating_sub(ORDER_LINES)..=at];
        if is_ordered && !in_use && !near.iter().any(|line| line.contains("// ORDER:")) {
            found.push(Finding::at(at + 1, "an atomic's ordering without an ORDER comment"));
        }
        let is_direct = ["core::sync::atomic", "std::sync::atomic"].iter().any(|path| code.contains(path));
        if is_direct && part.is_modelled {
            found
                .push(Finding::at(at + 1, "atomics of a library come from `sync`, where loom replaces them"));
        }
        in_use &= !code.ends_with(';');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Part = Part { is_product: true, is_modelled: true };
    const OTHER: Part = Part { is_product: false, is_modelled: false };

    /// The lines with findings in a file of a library whose docs are in order.
    fn lines_found(body: &str) -> Vec<usize> {
        let found = check(Path::new("src/pool.rs"), &format!("//! Docs.\n{body}\n"), LIBRARY);
        found.into_iter().map(|finding| finding.line - 1).collect()
    }

    #[test]
    fn every_file_says_what_it_is_for_and_is_short() {
        let name = Path::new("src/a.rs");
        assert_eq!(check(name, "\n//! Docs.\n", OTHER), []);
        assert_eq!(check(name, "use a;\n//! Docs.\n", OTHER).len(), 1);
        assert_eq!(check(Path::new("tests/compile_fail/no_set_len.rs"), "fn main() {}\n", OTHER), []);
        for (limit, part) in [(MAX_LINES, OTHER), (MAX_PRODUCT_LINES, LIBRARY)] {
            assert_eq!(check(name, &"//! Docs.\n".repeat(limit), part), []);
            assert_eq!(check(name, &"//! Docs.\n".repeat(limit + 1), part).len(), 1);
        }
    }

    #[test]
    fn wide_comments_are_found() {
        let of = |start: &str, columns: usize| format!("{start}{}", "x".repeat(columns - start.len()));
        assert_eq!(lines_found(&of("// ", MAX_COMMENT_COLUMNS)), [0; 0]);
        assert_eq!(lines_found(&of("    /// ", MAX_COMMENT_COLUMNS + 1)), [1]);
        for whole in ["/// | ", "// https://", "/// ```\n/// "] {
            assert_eq!(lines_found(&of(whole, MAX_COMMENT_COLUMNS + 20)), [0; 0], "{whole}");
        }
    }

    #[test]
    fn orderings_need_their_reason() {
        assert_eq!(lines_found("a.load(Ordering::Acquire);"), [1]);
        assert_eq!(lines_found("// ORDER: Acquire pairs with b.\na.load(Ordering::Acquire);"), [0; 0]);
        let far = format!("// ORDER: too far.\n{}a.load(Ordering::Relaxed);", "b();\n".repeat(ORDER_LINES));
        assert_eq!(lines_found(&far), [ORDER_LINES + 2]);
        assert_eq!(lines_found("use a::Ordering::Relaxed;\nuse b::{\n    Ordering::SeqCst,\n};"), [0; 0]);
        assert_eq!(lines_found("a.cmp(b) == Ordering::Less // Ordering::Acquire"), [0; 0]);
        assert_eq!(check(Path::new("src/sync.rs"), "//! Docs.\nlet a = Ordering::Release;\n", LIBRARY), []);
    }

    #[test]
    fn library_atomics_come_from_the_facade() {
        assert_eq!(lines_found("use core::sync::atomic::AtomicU32;"), [1]);
        let text = "//! Docs.\nuse core::sync::atomic::AtomicU32;\n";
        assert_eq!(check(Path::new("src/sync.rs"), text, LIBRARY), []);
        assert_eq!(check(Path::new("src/lib.rs"), text, OTHER), []);
    }
}
