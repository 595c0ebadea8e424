//! What was caught before, so that a run that was stopped continues where it was.
//!
//! It counts while the sources are the same that a mutant's programs are built of: the package, the
//! one that all are built on, and the test kit. Mutants that survived are not kept.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::COMMON;
use super::trials::Outcome;
use crate::packages::Package;

/// One line for each: stamp of the sources, package, what caught it, its name there, the mutant.
const FILE: &str = "target/orderings/caught.txt";
const TEST_KIT: &str = "crates/buftest/src";
const COMMON_SOURCES: [&str; 2] = ["crates/bufcore/src", "crates/bufkit/src"];
const ALL: &str = "crates";

/// The mutants that were caught with the sources as they are.
#[derive(Debug)]
pub(super) struct Caught {
    /// Of each package.
    stamps: BTreeMap<String, String>,
    /// By package and name.
    known: BTreeMap<(String, String), Outcome>,
}

impl Caught {
    /// Reads what earlier runs wrote.
    pub(super) fn read(packages: &[Package]) -> Result<Self> {
        let mut stamps = BTreeMap::new();
        for package in packages {
            stamps.insert(package.name.clone(), stamp(package)?);
        }
        // There is none before the first run.
        let text = fs::read_to_string(FILE).unwrap_or_default();
        Ok(Self { known: parse(&text, &stamps), stamps })
    }

    /// What caught a mutant, if that is known.
    pub(super) fn outcome(&self, package: &str, name: &str) -> Option<&Outcome> {
        self.known.get(&(package.to_owned(), name.to_owned()))
    }

    /// Keeps what caught a mutant.
    pub(super) fn note(&mut self, package: &str, name: &str, outcome: &Outcome) -> Result<()> {
        let (Outcome::Models(by) | Outcome::Races(by)) = outcome else { return Ok(()) };
        let stamp = self.stamps.get(package).context("a package without a stamp")?;
        let mut file = OpenOptions::new().create(true).append(true).open(FILE)?;
        writeln!(file, "{stamp}\t{package}\t{}\t{by}\t{name}", outcome.word())
            .with_context(|| format!("cannot write {FILE}"))?;
        self.known.insert((package.to_owned(), name.to_owned()), outcome.clone());
        Ok(())
    }
}

/// The lines of `text` that have the stamp of their package.
fn parse(text: &str, stamps: &BTreeMap<String, String>) -> BTreeMap<(String, String), Outcome> {
    let of_line = |line: &str| {
        let [stamp, package, word, by, name] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let kinds = [Outcome::Models(by.to_owned()), Outcome::Races(by.to_owned())];
        let outcome = kinds.into_iter().find(|outcome| outcome.word() == word)?;
        let is_same = stamps.get(package).is_some_and(|now| now == stamp);
        is_same.then(|| ((package.to_owned(), name.to_owned()), outcome))
    };
    text.lines().filter_map(of_line).collect()
}

/// The same as long as nothing changes that the programs for a package's mutants are built of.
fn stamp(package: &Package) -> Result<String> {
    let mut files = Vec::new();
    if COMMON.contains(&&*package.name) {
        collect(Path::new(ALL), &mut files)?;
    } else {
        collect(&package.folder, &mut files)?;
        for sources in COMMON_SOURCES {
            collect(Path::new(sources), &mut files)?;
        }
        collect(Path::new(TEST_KIT), &mut files)?;
    }
    files.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for path in files {
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The sources in a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "toml") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_these_sources_count() {
        let stamps = BTreeMap::from([("bufring".to_owned(), "now".to_owned())]);
        let text = "now\tbufring\tmodels\tloom_one\ta: b\nbefore\tbufring\tmodels\tloom_one\tc: d\n\
                    now\tbufring\tsurvived\t\te: f\ncut off";
        let known = parse(text, &stamps);
        let outcome = Outcome::Models("loom_one".to_owned());
        assert_eq!(known, BTreeMap::from([(("bufring".to_owned(), "a: b".to_owned()), outcome)]));
    }
}
