//! The list of the implementations' numeric constants, which the test kit reads: it is what the sources say.

use std::fs;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::orderings;
use crate::packages::Package;

/// The list.
pub(super) const FILE: &str = "crates/buftest/thresholds.txt";
/// What is no implementation of buffers.
const OTHERS: [&str; 1] = ["buftrace"];

/// A constant, and the tokens of its value.
#[derive(Debug)]
struct Constant {
    package: String,
    file: String,
    name: String,
    value: Vec<TokenTree>,
}

/// Compares the list with the sources of the libraries among `packages`; writes it, if that is asked for.
pub(super) fn check(packages: &[Package], writes: bool) -> Result<Vec<Finding>> {
    let now = list(packages)?;
    let before = fs::read_to_string(FILE).unwrap_or_default();
    if writes && before != now {
        fs::write(FILE, &now).with_context(|| format!("cannot write {FILE}"))?;
        println!("{FILE}: written");
        return Ok(Vec::new());
    }
    Ok(differences(&before, &now))
}

/// What the list lacks, and what it should not have.
fn differences(list: &str, sources: &str) -> Vec<Finding> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (list, sources) = (lines(list), lines(sources));
    let missing = sources.iter().filter(|line| !list.contains(line));
    let missing =
        missing.map(|line| Finding::at(0, format!("lacks `{line}`: `cargo xtask tidy --thresholds`")));
    let gone = list.iter().enumerate().filter(|(_, line)| !sources.contains(line));
    let gone = gone.map(|(at, line)| Finding::at(at + 1, format!("`{line}` is not in the sources")));
    missing.chain(gone).collect()
}

/// The list as the sources have it.
fn list(packages: &[Package]) -> Result<String> {
    let mut constants = Vec::new();
    for package in packages {
        if package.published && !package.is_program() && !OTHERS.contains(&&*package.name) {
            for (path, text) in orderings::sources(package)? {
                let file =
                    path.strip_prefix(package.folder.join("src")).unwrap_or(&path).display().to_string();
                let tokens = text.parse().map_err(|error| anyhow!("no tokens of Rust in {file}: {error}"))?;
                find(&package.name, &file, tokens, &mut constants);
            }
        }
    }
    Ok(constants.iter().map(|one| one.line(&constants)).collect())
}

/// Finds the constants with numbers in a file of a package.
fn find(package: &str, file: &str, tokens: TokenStream, found: &mut Vec<Constant>) {
    const TYPES: [&str; 5] = ["usize", "u64", "u32", "u16", "RangeInclusive"];
    let run: Vec<_> = tokens.into_iter().collect();
    let word = |at: usize| run.get(at).map(ToString::to_string).unwrap_or_default();
    let mut at = 0;
    while at < run.len() {
        // What is behind it is for tests.
        if word(at) == "#" && word(at + 1) == "[cfg (test)]" {
            at += run[at..].iter().position(ends_item).unwrap_or(run.len() - at);
        } else if word(at) == "const" && word(at + 2) == ":" && TYPES.contains(&&*word(at + 3)) {
            let (name, rest) = (word(at + 1), &run[at + 4..]);
            let end = rest.iter().position(|token| token.to_string() == ";").unwrap_or(rest.len());
            let from = rest[..end].iter().position(|token| token.to_string() == "=").map(|at| at + 1);
            // Without a value it is one of a trait.
            if let Some(from) = from {
                let (package, file) = (package.to_owned(), file.to_owned());
                found.push(Constant { package, file, name, value: rest[from..end].to_vec() });
            }
        } else if let TokenTree::Group(group) = &run[at] {
            find(package, file, group.stream(), found);
        }
        at += 1;
    }
}

/// Whether an item ends with it: a semicolon, or braces.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    }
}

impl Constant {
    /// Its line of the list. A value that the sources alone do not give, such as the size of a type, is `unknown`.
    fn line(&self, all: &[Self]) -> String {
        let value = self.evaluate(&self.value, all, 0);
        let value = value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        format!("{} {} {} = {value}\n", self.package, self.file, self.name)
    }

    /// The number that an expression in its value stands for.
    fn evaluate(&self, tokens: &[TokenTree], all: &[Self], depth: usize) -> Option<u128> {
        const MOST: usize = 12;
        let inside = |group: &proc_macro2::Group| {
            self.evaluate(&group.stream().into_iter().collect::<Vec<_>>(), all, depth)
        };
        let words: Vec<_> = tokens.iter().map(ToString::to_string).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        // Models have smaller numbers, which come first.
        if let (["if", ..], Some(TokenTree::Group(last))) = (&words[..], tokens.last()) {
            return inside(last);
        }
        // Of a range, the end.
        if let Some(at) = words.windows(3).position(|run| run == [".", ".", "="]) {
            return self.evaluate(&tokens[at + 3..], all, depth);
        }
        // What binds least comes first. Operators of one kind are done from the left, so the last one is on top.
        for kind in [["<<", ">>"], ["+", "-"], ["*", "/"]] {
            let is = |at: usize| kind.iter().find(|operator| words[at..].concat().starts_with(*operator));
            let found = (1..words.len()).rev().find_map(|at| Some((at, is(at)?)));
            let Some((at, operator)) = found else { continue };
            let left = self.evaluate(&tokens[..at], all, depth)?;
            let right = self.evaluate(&tokens[at + operator.len()..], all, depth)?;
            return match *operator {
                "<<" => left.checked_shl(right.try_into().ok()?),
                ">>" => left.checked_shr(right.try_into().ok()?),
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                _ => left.checked_div(right),
            };
        }
        match (&words[..], tokens) {
            ([value @ .., "as", _], _) => self.evaluate(&tokens[..value.len()], all, depth),
            (_, [TokenTree::Group(group)]) => inside(group),
            (["usize" | "u64", ":", ":", "MAX"], _) => Some(u64::MAX.into()),
            (["isize", ":", ":", "MAX"], _) => Some(1_u128 << 63).map(|end| end - 1),
            (["u32", ":", ":", "MAX"], _) => Some(u32::MAX.into()),
            (["u16", ":", ":", "MAX"], _) => Some(u16::MAX.into()),
            (["usize", ":", ":", "BITS"], _) => Some(64),
            ([number], [TokenTree::Literal(_)]) => {
                let digits = number.replace('_', "");
                let digits = ["usize", "u64", "u32", "u16"]
                    .iter()
                    .fold(&*digits, |text, end| text.strip_suffix(end).unwrap_or(text));
                match digits.strip_prefix("0x") {
                    Some(digits) => u128::from_str_radix(digits, 16).ok(),
                    None => digits.parse().ok(),
                }
            }
            ([path @ .., name], [.., TokenTree::Ident(_)]) if !path.contains(&"<") && depth < MOST => {
                let near = |one: &&Self| (one.package != self.package, one.file != self.file);
                let one = all.iter().filter(|one| one.name == *name).min_by_key(near)?;
                one.evaluate(&one.value, all, depth + 1)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: &[(&str, &str)]) -> String {
        let mut found = Vec::new();
        for (file, text) in files {
            find("a", file, text.parse().expect("tokens"), &mut found);
        }
        found.iter().map(|one| one.line(&found)).collect()
    }

    #[test]
    fn constants_are_evaluated() {
        let text = "pub(crate) const A: usize = 16 << 10; mod m { const B: u32 = 2 * A as u32 - 0x10_u32; }
            const C: usize = if cfg!(loom) { 1 } else { 1_000 / (2 + 2) }; const D: usize = size_of::<Block>();
            const E: RangeInclusive<usize> = C..=2 * C; const F: Duration = Duration::ZERO;
            #[cfg(test)] mod tests { const G: usize = 3; } const H: usize = super::K + usize::MAX % 2;
            const I: usize = one::K; trait T { const J: usize; }";
        let list = listed(&[("x.rs", text), ("y.rs", "const K: usize = 7;")]);
        let lines: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("a x.rs ")).collect();
        let first = ["A = 16384", "B = 32752", "C = 250", "D = unknown", "E = 500"];
        assert_eq!(lines[..5], first);
        assert_eq!(lines[5..], ["H = unknown", "I = 7"]);
    }

    #[test]
    fn a_name_means_what_is_nearest() {
        let near = ("x.rs", "const A: usize = 1; const B: usize = A;");
        let list = listed(&[("y.rs", "const A: usize = 2; const C: usize = C;"), near]);
        assert!(list.contains("x.rs B = 1\n") && list.contains("y.rs C = unknown\n"), "{list}");
    }

    #[test]
    fn what_differs_is_told() {
        assert_eq!(differences("a\nb\n", "a\nb\n"), []);
        let found = differences("a\nb\n", "a\nc\n");
        assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [0, 2]);
    }
}
