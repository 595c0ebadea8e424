//! The list of the libraries' numeric constants, around which the test kit draws its numbers: it has all constants of the sources.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Finding, is_word};
use crate::orderings;
use crate::packages::Package;

/// The package with the list.
const KIT: &str = "testkit";
/// The types of the constants.
const TYPES: [&str; 5] = ["usize", "u64", "u32", "u16", "RangeInclusive<usize>"];

/// Compares the list with the sources of the libraries among `packages`; writes it, if that is asked for.
pub(super) fn check(packages: &[Package], writes: bool) -> Result<(PathBuf, Vec<Finding>)> {
    let kit = packages.iter().find(|package| package.name == KIT).context("no test kit")?;
    let file = kit.folder.join("thresholds.txt");
    let now = list(packages)?;
    let before = fs::read_to_string(&file).unwrap_or_default();
    if writes && before != now {
        fs::write(&file, &now).with_context(|| format!("cannot write {}", file.display()))?;
        println!("{}: written", file.display());
        return Ok((file, Vec::new()));
    }
    Ok((file, differences(&before, &now)))
}

/// What the list lacks, and what it should not have.
fn differences(list: &str, sources: &str) -> Vec<Finding> {
    let missing = sources.lines().filter(|line| !list.lines().any(|one| one == *line));
    let missing =
        missing.map(|line| Finding::at(0, format!("lacks `{line}`: `cargo xtask tidy --thresholds`")));
    let gone = list.lines().enumerate().filter(|(_, line)| !sources.lines().any(|one| one == *line));
    let gone = gone.map(|(at, line)| Finding::at(at + 1, format!("`{line}` is not in the sources")));
    missing.chain(gone).collect()
}

/// The list as the sources have it.
fn list(packages: &[Package]) -> Result<String> {
    let mut list = String::new();
    for package in packages.iter().filter(|package| package.published && !package.is_program()) {
        for (path, text) in orderings::sources(package)? {
            let file = path.strip_prefix(package.folder.join("src")).unwrap_or(&path).display();
            for (name, value) in constants(&text) {
                list.push_str(&format!("{} {file} {name} = {value}\n", package.name));
            }
        }
    }
    Ok(list)
}

/// The constants with numbers that a source has in front of its tests, with their values as they are written.
fn constants(text: &str) -> Vec<(String, String)> {
    let code = text.lines().take_while(|line| *line != "mod tests {");
    let code: String =
        code.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
    let constant = |declaration: &str| {
        let (head, rest) = declaration.split_once('=')?;
        let (name, kind) = head.split_once(':')?;
        let (value, _) = rest.split_once(';')?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        (name.chars().all(is_word) && TYPES.contains(&kind.trim())).then(|| (name.to_owned(), value))
    };
    code.split("const ").skip(1).filter_map(constant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_with_their_values() {
        let text = "/// const A: usize = 1;\npub(crate) const B: u32 = 16 << 10;\nconst fn c() {}\n\
                    const D: RangeInclusive<usize> =\n    1..=B;\nconst E: &str = \"e\";\n\
                    trait F { const G: usize; }\n#[cfg(test)]\nmod tests {\n    const H: usize = 3;\n}\n";
        let found = constants(text);
        let found: Vec<_> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("B", "16 << 10"), ("D", "1..=B")]);
    }

    #[test]
    fn what_differs_is_told() {
        assert_eq!(differences("a\nb\n", "a\nb\n"), []);
        let found = differences("a\nb\n", "a\nc\n");
        assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [0, 2]);
    }
}
