//! `cargo xtask api`: the public interface of each published package as a list of its items, kept in `docs/api`, so that a change of it is
//! seen in review.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::packages;
use crate::shell::{self, command};
use crate::steps::Outcome;

/// Where the lists are.
const FOLDER: &str = "docs/api";
/// How many lines of a difference are shown.
const SHOWN: usize = 40;

/// Options of `api`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Compare the lists with the sources, and write nothing.
    #[arg(long)]
    check: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if self.check {
            return check().map(drop);
        }
        fs::create_dir_all(FOLDER).with_context(|| format!("cannot make {FOLDER}"))?;
        for (path, list) in lists()? {
            fs::write(&path, list).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// Whether the lists are those of the sources. On Linux, since some items are for it alone.
pub(crate) fn check() -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Outcome::skipped("the lists are those of Linux");
    }
    let mut changed = Vec::new();
    for (path, list) in lists()? {
        let kept = fs::read_to_string(&path).unwrap_or_default();
        changed.extend(difference(&kept, &list).map(|line| format!("{}: {line}", path.display())));
    }
    if changed.is_empty() {
        return Ok(Outcome::Passed);
    }
    let total = changed.len();
    changed.truncate(SHOWN);
    bail!(
        "{total} lines of the public interface differ from `docs/api`; `cargo xtask api` writes the lists again:\n{}",
        changed.join("\n")
    )
}

/// Where the list of each published package is, and what has to be in it.
fn lists() -> Result<Vec<(PathBuf, String)>> {
    let target = shell::target_folder().join("api");
    let mut lists = Vec::new();
    for package in packages::published()? {
        let name = &package.name;
        let mut command = command!(
            "cargo rustdoc --quiet --lib --all-features --package {name} --target-dir {target}
             -- -Zunstable-options --output-format=json --cap-lints=allow"
        );
        // The pinned toolchain's own description of a library, whose format is that of the version of `public-api` that we have. A
        // nightly's changes from week to week.
        shell::run(command.env("RUSTC_BOOTSTRAP", "1"))?;
        let json = target.join("doc").join(package.name.replace('-', "_")).with_extension("json");
        let items = items(&json).with_context(|| format!("cannot list {}", package.name))?;
        lists.push((Path::new(FOLDER).join(&package.name).with_extension("txt"), items));
    }
    Ok(lists)
}

/// One line for each public item that the description of a library has, in order.
fn items(json: &Path) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_auto_derived_impls(true)
        .omit_auto_trait_impls(true)
        .omit_blanket_impls(true)
        .build()?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// The lines that only one of two lists has, both in the order of the lists.
fn difference<'a>(kept: &'a str, list: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let missing = move |line: &&str, from: &'a str| !from.lines().any(|other| other == *line);
    let gone = kept.lines().filter(move |line| missing(line, list)).map(|line| format!("- {line}"));
    gone.chain(list.lines().filter(move |line| missing(line, kept)).map(|line| format!("+ {line}")))
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_is_what_one_has_alone() {
        let lines: Vec<_> = difference("a\nb\nc\n", "a\nc\nd\n").collect();
        assert_eq!(lines, ["- b", "+ d"]);
        assert_eq!(difference("a\n", "a\n").count(), 0);
    }
}
