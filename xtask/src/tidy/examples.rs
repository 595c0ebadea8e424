//! Examples: each public type of the packages has one in its documentation, which is compiled with
//! the tests of the documentation.
//!
//! Which types are public is read from the lists in `docs/api`, which `cargo xtask api` keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use super::{Finding, is_word};
use crate::packages::Package;

/// How types are declared.
const KINDS: [&str; 4] = ["struct ", "enum ", "union ", "trait "];
/// The words behind a fence whose code is compiled. One without a word is, too.
const COMPILED: [&str; 4] = ["rust", "no_run", "should_panic", "standalone_crate"];

/// The names of the public types of each published package.
#[derive(Debug)]
pub(super) struct Types {
    of_package: BTreeMap<String, BTreeSet<String>>,
}

impl Types {
    /// Reads the lists.
    pub(super) fn read(packages: &[Package]) -> Result<Self> {
        let read = |package: &Package| {
            let list = format!("docs/api/{}.txt", package.name);
            let text = fs::read_to_string(&list).with_context(|| format!("cannot read {list}"))?;
            Ok((package.name.clone(), listed(&text)))
        };
        let published = packages.iter().filter(|package| package.published);
        Ok(Self { of_package: published.map(read).collect::<Result<_>>()? })
    }

    /// Checks a source file of `package`.
    pub(super) fn check(&self, package: &Package, text: &str) -> Vec<Finding> {
        self.of_package.get(&package.name).map_or_else(Vec::new, |types| missing(text, types))
    }
}

/// The names of the types in a list of public items, without their paths.
fn listed(list: &str) -> BTreeSet<String> {
    let name = |line| {
        let path = declared(line)?.split(|c: char| !is_word(c) && c != ':').next()?;
        path.trim_end_matches(':').rsplit("::").next().map(str::to_owned)
    };
    list.lines().filter_map(name).collect()
}

/// The types among `types` that a source file declares without an example.
fn missing(text: &str, types: &BTreeSet<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut docs = Vec::new();
    // Brackets of an attribute that are still open.
    let mut open = 0_usize;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if open == 0
            && let Some(doc) = line.strip_prefix("///")
        {
            docs.push(doc.trim());
        } else if open > 0 || line.starts_with("#[") {
            let count = |bracket| line.matches(bracket).count();
            open = (open + count('[')).saturating_sub(count(']'));
        } else if !line.starts_with("//") {
            let name = declared(line).and_then(|rest| rest.split(|c| !is_word(c)).next());
            if let Some(name) = name
                && types.contains(name)
                && !has_example(&docs)
            {
                let message = format!("`{name}` has no example in its documentation that is compiled");
                found.push(Finding::at(at + 1, message));
            }
            docs.clear();
        }
    }
    found
}

/// What follows the kind in the declaration of a public type.
fn declared(line: &str) -> Option<&str> {
    // In lists, some attributes are in front.
    let line = line.rsplit_once(")] ").or_else(|| line.rsplit_once("] ")).map_or(line, |(_, line)| line);
    let line = line.strip_prefix("pub ")?;
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    KINDS.iter().find_map(|kind| line.strip_prefix(kind))
}

/// Whether a documentation, line by line, has a piece of code that is compiled.
fn has_example(docs: &[&str]) -> bool {
    let mut in_code = false;
    docs.iter().filter_map(|line| line.strip_prefix("```")).any(|words| {
        in_code = !in_code;
        in_code
            && words
                .split([',', ' '])
                .filter(|word| !word.is_empty())
                .all(|word| COMPILED.contains(&word) || word.starts_with("edition"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let types = ["Pool", "Lease"].map(str::to_owned).into_iter().collect();
        missing(text, &types).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn public_types_are_those_of_the_list() {
        let list = "pub mod a\npub fn a::Pool::new() -> Self\n#[non_exhaustive] pub enum a::b::Error\n\
                    #[repr(transparent)] pub struct a::Views(_)\npub struct a::Pool<'a, F: a::Fall>\n\
                    pub unsafe trait a::Lease: core::marker::Send\nimpl a::Pool\n";
        let types = listed(list);
        assert_eq!(types.iter().collect::<Vec<_>>(), ["Error", "Lease", "Pool", "Views"]);
    }

    #[test]
    fn types_without_an_example_are_found() {
        assert_eq!(lines("/// A pool.\npub struct Pool {\n"), [2]);
        assert_eq!(lines("pub unsafe trait Lease: Send {\n"), [1]);
        assert_eq!(lines("/// A pool.\n///\n/// ```\n/// a();\n/// ```\npub struct Pool<T>(T);\n"), [0; 0]);
        assert_eq!(lines("/// ```\n/// a();\n/// ```\nfn a() {}\npub struct Pool;\n"), [5]);
        // A type that is not in the list is not public.
        assert_eq!(lines("/// A pool.\npub struct Pools;\npub(crate) struct Pool;\n"), [0; 0]);
    }

    #[test]
    fn attributes_may_be_between() {
        let text = "/// ```\n/// a();\n/// ```\n// Why.\n#[cfg_attr(\n    a,\n    b([c]),\n)]\n#[derive(Debug)]\n\
                    pub struct Pool;\n/// A lease.\n#[derive(Debug)]\npub struct Lease;\n";
        assert_eq!(lines(text), [13]);
    }

    #[test]
    fn only_what_is_compiled_is_an_example() {
        for words in ["", "rust", "no_run", "edition2024,no_run"] {
            assert!(has_example(&[&format!("```{words}"), "a();", "```"]), "{words}");
        }
        for words in ["text", "ignore", "compile_fail", "rust,ignore"] {
            assert!(!has_example(&[&format!("```{words}"), "a();", "```"]), "{words}");
        }
        assert!(has_example(&["```text", "a", "```", "", "```", "a();", "```"]));
        assert!(!has_example(&["A text."]));
    }
}
