//! Mutants of memory orders, which are generated: each order in the libraries once as the next weaker one (`broken --orderings`).
//!
//! The models have to fail with it, or the `races` programs under ThreadSanitizer. Otherwise a paragraph in `testing/mutants/orderings.txt` says
//! why no test can, or where else the order is shown to be needed:
//!
//! ```text
//! # A comment.
//! bufslot release: state.store: Release to Relaxed
//!     equivalent: the reason, in as many lines as it takes.
//! ```
//!
//! A verdict is `equivalent`, of a mutant that no execution tells from the original, or `elsewhere`, of one that needs another proof than
//! these models, which the reason names.
//!
//! All mutants are in one build. In a copy of the sources each order is a call that answers with the weaker one when its mutant was
//! chosen. So a mutant costs no compiler.

mod scan;
mod sources;
mod trials;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use self::scan::{Constants, Place};
use self::trials::Trials;
use crate::mutant_build::read;
use crate::packages::{self, Package};

pub(crate) use self::sources::of as sources;

/// Where the paragraphs are about mutants that no test of this kind can find.
pub(crate) const FILE: &str = "testing/mutants/orderings.txt";
const VERDICTS: [&str; 2] = ["equivalent", "elsewhere"];

/// One order of one operation, made weaker.
#[derive(Debug)]
struct Mutant {
    package: String,
    /// As `testing/mutants/orderings.txt` names it: function, operation, orders. The same in whichever file of the package it is.
    name: String,
    /// Where it is, for people.
    place: String,
}

/// A file of a package, with what is found in it.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
    /// Each with the numbers of its mutants.
    places: Vec<(Place, Vec<usize>)>,
}

/// All mutants, and the files that they are in.
#[derive(Debug)]
pub(crate) struct Orderings {
    mutants: Vec<Mutant>,
    sources: Vec<Source>,
}

impl Orderings {
    /// Those of the published ones among `packages`.
    pub(crate) fn of(packages: &[Package]) -> Result<Self> {
        let mut files = Vec::new();
        let root = std::env::current_dir()?;
        for package in packages.iter().filter(|package| package.published) {
            for (path, text) in sources::of(package)? {
                let path = path.strip_prefix(&root).unwrap_or(&path).to_owned();
                files.push((package.name.as_str(), path, text));
            }
        }
        // A package may use those of another; its own count first.
        let (mut constants, mut all_constants) = (BTreeMap::<&str, Constants>::new(), Constants::new());
        for (package, _, text) in &files {
            let found = scan::constants(text)?;
            all_constants.extend(found.clone());
            constants.entry(package).or_default().extend(found);
        }
        let mut all = Self { mutants: Vec::new(), sources: Vec::new() };
        // How often a name came before: names that are not the only ones of their kind get numbers.
        let mut times = BTreeMap::<(&str, String), usize>::new();
        for (package, path, text) in files {
            let mut known = all_constants.clone();
            known.extend(constants[package].clone());
            let mut places = Vec::new();
            for place in scan::places(&text, &known)? {
                let mut numbers = Vec::new();
                for weaker in place.weaker() {
                    let mut name = name(&place, weaker);
                    let times = times.entry((package, name.clone())).or_default();
                    *times += 1;
                    if *times > 1 {
                        name = format!("{name} #{times}");
                    }
                    numbers.push(all.mutants.len());
                    let line = text[..place.at.start].lines().count();
                    let place = format!("{}:{line}", path.display());
                    all.mutants.push(Mutant { package: package.to_owned(), name, place });
                }
                places.push((place, numbers));
            }
            all.sources.push(Source { path, text, places });
        }
        Ok(all)
    }

    /// What is wrong with the checked-in paragraphs: the number of the line and what it is.
    pub(crate) fn faults(&self) -> Result<Vec<(usize, String)>> {
        Ok(self.verdicts(&read(Path::new(FILE))?).1)
    }

    /// The verdicts that `text` has, by the mutants' numbers, and what is wrong with it.
    fn verdicts(&self, text: &str) -> (BTreeMap<usize, &'static str>, Vec<(usize, String)>) {
        let (mut verdicts, mut wrong) = (BTreeMap::new(), Vec::new());
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let mut lines =
            lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).peekable();
        while let Some((number, title)) = lines.next() {
            let mut reason = lines.peek().map(|(_, line)| *line).filter(|line| line.starts_with(' '));
            let word = reason.and_then(|line| line.trim().split_once(": ")).map(|(word, _)| word);
            let verdict = VERDICTS.into_iter().find(|verdict| Some(*verdict) == word);
            while reason.is_some() {
                lines.next();
                reason = lines.peek().map(|(_, line)| *line).filter(|line| line.starts_with(' '));
            }
            let is_named = |mutant: &Mutant| title.split_once(' ') == Some((&*mutant.package, &*mutant.name));
            match (self.mutants.iter().position(is_named), verdict) {
                (None, _) => wrong.push((number, format!("no order is `{title}`"))),
                (_, None) => {
                    wrong.push((number, "no `equivalent: ` or `elsewhere: ` with a reason".to_owned()))
                }
                (Some(at), Some(verdict)) => {
                    if verdicts.insert(at, verdict).is_some() {
                        wrong.push((number, format!("two paragraphs for `{title}`")));
                    }
                }
            }
        }
        (verdicts, wrong)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.mutants.len()
    }
}

/// What a mutant is called, from what its place is.
fn name(place: &Place, weaker: &str) -> String {
    let Place { function, operation, order, is_failure, .. } = place;
    let failure = if *is_failure { " on failure" } else { "" };
    format!("{function}: {operation}{failure}: {} to {weaker}", order.name())
}

/// Runs `broken --orderings`, for the package `chosen` or for all, and for the mutants that one of
/// `named` is a part of, or for all: with `only_list` it says what there is.
pub(crate) fn run(chosen: Option<&str>, named: &[String], only_list: bool) -> Result<()> {
    let orderings = Orderings::of(&packages::published()?)?;
    let (verdicts, wrong) = orderings.verdicts(&read(Path::new(FILE))?);
    if let Some((line, message)) = wrong.into_iter().next() {
        bail!("{FILE}:{line}: {message}");
    }
    let is_chosen = |mutant: &Mutant| {
        chosen.is_none_or(|package| package == mutant.package)
            && (named.is_empty() || named.iter().any(|part| mutant.name.contains(&**part)))
    };
    let all = orderings.mutants.iter().enumerate().filter(|(_, mutant)| is_chosen(mutant));
    let (mut counts, mut tried) = (Counts::default(), Vec::new());
    for (at, Mutant { package, name, place }) in all {
        let verdict = verdicts.get(&at).copied();
        if only_list {
            println!("{package} {name} ({place}) {}", verdict.unwrap_or_default());
        }
        match verdict {
            Some(verdict) => counts.note(package, verdict),
            None => tried.push(at),
        }
    }
    ensure!(!counts.0.is_empty() || !tried.is_empty(), "no such order; `--list` shows them all");
    if only_list {
        return Ok(());
    }
    let mut survived = Vec::new();
    Trials::new(&orderings)?.run(&tried, |outcome| {
        let Mutant { package, name, place } = &orderings.mutants[outcome.at];
        let (word, told) = match outcome.caught {
            Some((word, by)) => (word, format!("caught by {by}")),
            None if outcome.is_reached => ("survived", "SURVIVED, though it is reached".to_owned()),
            None => ("survived", "SURVIVED, and nothing reaches it".to_owned()),
        };
        println!("{package} {name}: {told}");
        counts.note(package, word);
        if word == "survived" {
            survived.push(format!("{package} {name} ({place}): {told}"));
        }
    })?;
    counts.print();
    let count = survived.len();
    ensure!(count == 0, "{count} orders may be weaker, for all that is seen:\n{}", survived.join("\n"));
    Ok(())
}

/// How many mutants of each package came out how.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, BTreeMap<&'static str, usize>>);

impl Counts {
    fn note(&mut self, package: &str, word: &'static str) {
        *self.0.entry(package.to_owned()).or_default().entry(word).or_default() += 1;
    }

    /// As a Markdown table.
    fn print(&self) {
        const COLUMNS: [&str; 5] = ["models", "races", "equivalent", "elsewhere", "survived"];
        println!("| package | mutants | {} |", COLUMNS.join(" | "));
        println!("| --- |{}", " ---: |".repeat(1 + COLUMNS.len()));
        for (package, counts) in &self.0 {
            let all: usize = counts.values().sum();
            let columns = COLUMNS.map(|word| counts.get(word).copied().unwrap_or_default().to_string());
            println!("| `{package}` | {all} | {} |", columns.join(" | "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_and_faults_named() {
        let mutant = |package: &str, name: &str| Mutant {
            package: package.to_owned(),
            name: name.to_owned(),
            place: String::new(),
        };
        let mutants = vec![mutant("bufslot", "a: b.load: Acquire to Relaxed"), mutant("bufring", "c: d")];
        let all = Orderings { mutants, sources: Vec::new() };
        let text = "# about\n\nbufslot a: b.load: Acquire to Relaxed\n    equivalent: it is\n    so.\n\
                    bufring c: d\n    elsewhere: there\n";
        let (verdicts, wrong) = all.verdicts(text);
        assert_eq!((verdicts, wrong), ([(0, "equivalent"), (1, "elsewhere")].into(), Vec::new()));
        for (bad, line) in [
            ("bufring c: e\n    equivalent: so\n", 1),
            ("bufring c: d\n", 1),
            ("bufring c: d\n    because\n", 1),
            ("bufring c: d\n    elsewhere: a\nbufring c: d\n    elsewhere: b\n", 3),
        ] {
            let (_, wrong) = all.verdicts(bad);
            assert_eq!(wrong.iter().map(|one| one.0).collect::<Vec<_>>(), [line], "{bad}");
        }
    }
}
