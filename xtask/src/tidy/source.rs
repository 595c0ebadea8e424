//! The rules for one file.

use std::path::Path;

use super::Finding;
use super::lex::{self, Line, is_word};
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
/// A statement and the comment in front of it are looked for over at most this number of lines.
const SAFETY_LINES: usize = 16;

const UNFINISHED_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
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
    let mut found = Vec::new();
    let is = |ending: &str| name.extension().is_some_and(|found| found == ending);
    if is("md") {
        found.extend(links::check(name, text));
    }
    if !is("rs") {
        line_ends(text, &mut found);
        return found;
    }
    found.extend(links::check_rust(name, text));
    let lines = lex::lines(text);
    length(text, if part.is_product { MAX_PRODUCT_LINES } else { MAX_LINES }, &mut found);
    if part.is_product {
        width(text, &mut found);
    }
    unfinished(&lines, &mut found);
    // A program that must not compile says what it is for in its name, and its line numbers in what the compiler answers.
    if name.iter().any(|part| part == "compile_fail") {
        return found;
    }
    module_docs(text, &mut found);
    safety(&lines, &mut found);
    if name.file_name().is_none_or(|file| file != "sync.rs" && !name.ends_with("sync/mod.rs")) {
        orders(&lines, &mut found);
        if part.is_modelled {
            facade(&lines, &mut found);
        }
    }
    found
}

/// What rustfmt does for Rust.
fn line_ends(text: &str, found: &mut Vec<Finding>) {
    for (at, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            found.push(Finding::at(at + 1, "space at the end of the line"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(Finding::at(text.lines().count(), "no line end at the end of the file"));
    }
}

fn module_docs(text: &str, found: &mut Vec<Finding>) {
    if text.lines().find(|line| !line.trim().is_empty()).is_none_or(|line| !line.starts_with("//!")) {
        found.push(Finding::at(1, "no `//!` that says what the file is for"));
    }
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
            found.push(Finding::at(
                at + 1,
                format!("a comment of {columns} columns, over {MAX_COMMENT_COLUMNS}"),
            ));
        }
    }
}

fn unfinished(lines: &[Line], found: &mut Vec<Finding>) {
    for (at, line) in lines.iter().enumerate() {
        for word in UNFINISHED_WORDS {
            if has_word(&line.comment, word) || has_word(&line.code, word) {
                found.push(Finding::at(at + 1, format!("unfinished: {word}")));
            }
        }
    }
}

fn safety(lines: &[Line], found: &mut Vec<Finding>) {
    for (at, line) in lines.iter().enumerate() {
        let code = &line.code;
        let block = ["unsafe {", "unsafe{"].iter().any(|start| code.contains(start));
        if (block || has_word(code, "unsafe impl")) && !explained(lines, at) {
            found.push(Finding::at(at + 1, "`unsafe` without a SAFETY comment"));
        }
    }
}

/// Whether a SAFETY comment stands in the statement of line `at`, or right in front of it.
fn explained(lines: &[Line], at: usize) -> bool {
    let mut in_front = false;
    for line in lines[..=at].iter().rev().take(SAFETY_LINES) {
        if line.comment.contains("SAFETY") {
            return true;
        }
        let code = line.code.trim();
        if in_front && (code.is_empty() && line.comment.is_empty() || code.ends_with([';', '}'])) {
            return false;
        }
        in_front = true;
    }
    false
}

fn orders(lines: &[Line], found: &mut Vec<Finding>) {
    let mut in_use = false;
    for (at, line) in lines.iter().enumerate() {
        let code = line.code.trim();
        in_use |= ["use ", "pub use ", "pub(crate) use "].iter().any(|start| code.starts_with(start));
        let ordered = ORDERINGS.iter().any(|name| has_word(code, &format!("Ordering::{name}")));
        let first = at.saturating_sub(ORDER_LINES);
        if ordered && !in_use && !lines[first..=at].iter().any(|line| line.comment.contains("ORDER:")) {
            found.push(Finding::at(at + 1, "an atomic's ordering without an ORDER comment"));
        }
        in_use &= !code.ends_with(';');
    }
}

fn facade(lines: &[Line], found: &mut Vec<Finding>) {
    for (at, line) in lines.iter().enumerate() {
        if ["core::sync::atomic", "std::sync::atomic"].iter().any(|path| line.code.contains(path)) {
            found
                .push(Finding::at(at + 1, "atomics of a library come from `sync`, where loom replaces them"));
        }
    }
}

/// Whether `text` has `word` in it, not as a part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let joined = before.is_some_and(is_word) || word.ends_with(is_word) && after.is_some_and(is_word);
        !joined
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Part = Part { is_product: true, is_modelled: true };
    const OTHER: Part = Part { is_product: false, is_modelled: false };

    /// What is found in a file of a library whose docs are in order.
    fn found(body: &str) -> Vec<(usize, String)> {
        let text = format!("//! Docs.\n{body}\n");
        let found = check(Path::new("src/pool.rs"), &text, LIBRARY);
        found.into_iter().map(|finding| (finding.line - 1, finding.message)).collect()
    }

    fn lines_found(body: &str) -> Vec<usize> {
        found(body).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn every_file_says_what_it_is_for() {
        let name = Path::new("src/a.rs");
        assert_eq!(check(name, "//! Docs.\n", OTHER), []);
        assert_eq!(check(name, "\n//! Docs.\n", OTHER), []);
        assert_eq!(check(name, "use a;\n//! Docs.\n", OTHER).len(), 1);
        assert_eq!(check(name, "", OTHER).len(), 1);
        assert_eq!(check(Path::new("tests/compile_fail/no_set_len.rs"), "fn main() {}\n", OTHER), []);
    }

    #[test]
    fn unfinished_marks_are_found() {
        for mark in UNFINISHED_WORDS {
            assert_eq!(lines_found(&format!("fn a() {{}} // {mark}: later")), [1], "{mark}");
            assert_eq!(lines_found(&format!("// {mark}S_OF_A_LONGER_WORD")), [0; 0], "{mark}");
        }
    }

    #[test]
    fn space_at_the_end_is_found_where_rustfmt_does_not_look() {
        assert_eq!(lines_found("a \nb\t\nc"), [0; 0]);
        assert_eq!(check(Path::new("a.toml"), "x = 1 \n", OTHER).len(), 1);
        assert_eq!(check(Path::new("a.toml"), "x = 1", OTHER).len(), 1);
    }

    #[test]
    fn long_files_are_found() {
        let name = Path::new("src/a.rs");
        for (limit, part) in [(MAX_LINES, OTHER), (MAX_PRODUCT_LINES, LIBRARY)] {
            assert_eq!(check(name, &"//! Docs.\n".repeat(limit), part), []);
            assert_eq!(check(name, &"//! Docs.\n".repeat(limit + 1), part).len(), 1);
        }
    }

    #[test]
    fn wide_comments_are_found() {
        let name = Path::new("src/a.rs");
        let of = |start: &str, columns: usize| {
            format!("//! Docs.\n{start}{}\n", "x".repeat(columns - start.len()))
        };
        assert_eq!(check(name, &of("// ", MAX_COMMENT_COLUMNS), LIBRARY), []);
        assert_eq!(check(name, &of("// ", MAX_COMMENT_COLUMNS + 1), LIBRARY).len(), 1);
        assert_eq!(check(name, &of("    /// ", MAX_COMMENT_COLUMNS + 1), LIBRARY).len(), 1);
        for whole in ["/// | ", "// https://", "/// ```\n/// "] {
            assert_eq!(check(name, &of(whole, MAX_COMMENT_COLUMNS + 20), LIBRARY), [], "{whole}");
        }
        assert_eq!(check(name, &of("// ", 150), OTHER), []);
    }

    #[test]
    fn unsafe_needs_its_proof() {
        assert_eq!(lines_found("let a = 1;\nlet b = unsafe { f() };"), [2]);
        assert_eq!(lines_found("// SAFETY: mine.\nunsafe { f() }"), [0; 0]);
        assert_eq!(lines_found("// SAFETY: mine,\n// and long.\nlet a =\n    unsafe { f() };"), [0; 0]);
        assert_eq!(lines_found("// SAFETY: for a.\nlet a = unsafe { f() };\nlet b = unsafe { f() };"), [3]);
        assert_eq!(lines_found("// SAFETY: far away.\n\nunsafe impl Send for A {}"), [3]);
        assert_eq!(lines_found("// SAFETY: raw pointer.\n#[cfg(a)]\nunsafe impl Send for A {}"), [0; 0]);
        assert_eq!(
            lines_found("unsafe fn f() {}\n/// unsafe { } in text\nconst A: &str = \"unsafe {\";"),
            [0; 0]
        );
    }

    #[test]
    fn orderings_need_their_reason() {
        assert_eq!(lines_found("a.load(Ordering::Acquire);"), [1]);
        assert_eq!(lines_found("// ORDER: Acquire pairs with b.\na.load(Ordering::Acquire);"), [0; 0]);
        let far = format!("// ORDER: too far.\n{}a.load(Ordering::Relaxed);", "b();\n".repeat(ORDER_LINES));
        assert_eq!(lines_found(&far), [ORDER_LINES + 2]);
        assert_eq!(lines_found("use a::Ordering::Relaxed;\nuse b::{\n    Ordering::SeqCst,\n};"), [0; 0]);
        assert_eq!(lines_found("a.cmp(b) == Ordering::Less"), [0; 0]);
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
