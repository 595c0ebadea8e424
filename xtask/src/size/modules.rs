//! The files of a package as modules: lines, types, and which file uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::TokenTree;

use crate::rust_code::Code;

/// A path in a package, without `crate`.
type Names = Vec<String>;

/// The module that a file of a package is; what is outside of `src` is nobody's module, and has a name of its own.
pub(super) fn module(inside: &Path) -> Names {
    let in_src = inside.strip_prefix("src").map(Path::to_owned);
    let path = in_src.unwrap_or_else(|_| Path::new("outside of src").join(inside)).with_extension("");
    let mut names: Names = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod" || (names.len() == 1 && last == "lib")) {
        names.pop();
    }
    names
}

/// A package's files, as modules.
pub(super) struct Sources(pub(super) BTreeMap<Names, Code>);

impl Sources {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn lines(&self) -> usize {
        self.0.values().map(Code::lines).sum()
    }

    pub(super) fn public_types(&self) -> usize {
        self.0.values().map(|code| public_types(&code.tokens)).sum()
    }

    /// The files that use each other: those of each group of which every file leads to every other.
    ///
    /// A file uses another by `use`. What it uses by a name that a third one passes on is a use of the file that the name leads to. A
    /// module may use its own submodules.
    pub(super) fn circles(&self) -> Vec<Vec<String>> {
        let passed_on: BTreeMap<&Names, Vec<Names>> =
            self.0.iter().map(|(at, code)| (at, self.uses(at, code))).collect();
        let uses: BTreeMap<&Names, BTreeSet<&Names>> = passed_on
            .iter()
            .map(|(&at, paths)| {
                let used = paths.iter().filter_map(|path| self.file(path, &passed_on, 5));
                (at, used.filter(|used| !used.starts_with(at)).collect())
            })
            .collect();
        let reached: BTreeMap<&Names, BTreeSet<&Names>> =
            uses.keys().map(|&at| (at, reach(at, &uses))).collect();
        let mut circles = BTreeSet::new();
        for (at, all) in &reached {
            let circle: Vec<_> = all.iter().filter(|one| reached[**one].contains(at)).collect();
            if circle.len() > 1 {
                circles.insert(circle.into_iter().map(|names| name(names)).collect());
            }
        }
        circles.into_iter().collect()
    }

    /// What a module uses of its package, as paths from the root.
    fn uses(&self, at: &Names, code: &Code) -> Vec<Names> {
        let mut paths = Vec::new();
        uses(&code.tokens, &mut paths);
        paths.into_iter().filter_map(|path| self.absolute(at, path)).collect()
    }

    fn absolute(&self, at: &Names, path: Names) -> Option<Names> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let first = path.first()?;
        let (from, rest) = match first.as_str() {
            "crate" => (&at[..0], &path[1..]),
            "self" => (&at[..], &path[1..]),
            "super" => (&at[..at.len().checked_sub(supers)?], &path[supers..]),
            _ if self.0.contains_key(&[&at[..], std::slice::from_ref(first)].concat()) => {
                (&at[..], &path[..])
            }
            _ => return None,
        };
        Some([from, rest].concat())
    }

    /// The file that a path leads to, through at most `steps` names that are passed on.
    fn file<'a>(
        &'a self,
        path: &[String],
        passed_on: &BTreeMap<&'a Names, Vec<Names>>,
        steps: usize,
    ) -> Option<&'a Names> {
        let length = (0..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length]))?;
        let (file, _) = self.0.get_key_value(&path[..length])?;
        let next =
            path.get(length).and_then(|name| passed_on[file].iter().find(|other| other.last() == Some(name)));
        match next {
            Some(next) if steps > 0 && **next != path[..=length] => {
                self.file(&[&next[..], &path[length + 1..]].concat(), passed_on, steps - 1)
            }
            _ => Some(file),
        }
    }
}

fn name(module: &Names) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

/// What is used by `from`, and by what that uses.
fn reach<'a>(from: &'a Names, uses: &BTreeMap<&'a Names, BTreeSet<&'a Names>>) -> BTreeSet<&'a Names> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        left.extend(uses.get(at).into_iter().flatten().filter(|next| reached.insert(**next)));
    }
    reached
}

/// How many types tokens declare as `pub`.
fn public_types(tokens: &[TokenTree]) -> usize {
    let declares = |pair: &&[TokenTree]| {
        let word = |at: usize| pair[at].to_string();
        word(0) == "pub" && ["struct", "enum", "union"].contains(&word(1).as_str())
    };
    let inside = tokens.iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(public_types(&group.stream().into_iter().collect::<Vec<_>>())),
        _ => None,
    });
    tokens.windows(2).filter(declares).count() + inside.sum::<usize>()
}

/// The paths that `use` names.
fn uses(tokens: &[TokenTree], found: &mut Vec<Names>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            // Not `impl Trait + use<'a>`.
            TokenTree::Ident(word)
                if word == "use" && tokens.get(at).is_some_and(|next| next.to_string() != "<") =>
            {
                let length = tokens[at..].iter().position(|token| token.to_string() == ";").unwrap_or(0);
                tree(&tokens[at..at + length], &Names::new(), found);
                at += length;
            }
            TokenTree::Group(group) => uses(&group.stream().into_iter().collect::<Vec<_>>(), found),
            _ => {}
        }
    }
}

fn tree(tokens: &[TokenTree], before: &Names, found: &mut Vec<Names>) {
    for one in tokens.split(|token| token.to_string() == ",").filter(|one| !one.is_empty()) {
        let mut path = before.clone();
        let mut is_whole = true;
        for token in one {
            match token {
                TokenTree::Ident(word) if word == "as" => break,
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    tree(&group.stream().into_iter().collect::<Vec<_>>(), &path, found);
                    is_whole = false;
                }
                _ => {}
            }
        }
        if is_whole {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        Code::of(text, false).unwrap()
    }

    #[test]
    fn public_types_are_counted() {
        let code = code("pub struct A; pub(crate) enum B {} mod c { pub enum D {} }");
        assert_eq!(public_types(&code.tokens), 2);
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let files = [
            ("src/lib.rs", "mod a; mod b; mod c; pub use c::{C, d::D};"),
            ("src/a.rs", "use crate::{b::{self, B}, C}; fn f() -> impl Send + use<> {}"),
            ("src/b/mod.rs", "mod inner; use inner::I;"),
            ("src/b/inner.rs", "use super::super::a::A;"),
            ("src/c/mod.rs", "pub(crate) mod d; use std::fmt;"),
            ("src/c/d.rs", "use super::C;"),
        ];
        let mut sources = Sources::new();
        for (file, text) in files {
            sources.0.insert(module(Path::new(file)), code(text));
        }
        assert_eq!(sources.circles(), Vec::<Vec<String>>::new());
        sources.0.insert(module(Path::new("src/b/mod.rs")), code("use crate::a::A; use std::fmt;"));
        assert_eq!(sources.circles(), [["a", "b"]]);
        sources.0.insert(module(Path::new("src/c/d.rs")), code("use super::super::b::B;"));
        sources.0.insert(module(Path::new("src/a.rs")), code("use crate::b; use crate::D;"));
        assert_eq!(sources.circles(), [["a", "b", "c::d"]]);
    }
}
