//! Mutants of memory orders, which are generated: each order in the libraries once as the next weaker one (`broken --orderings`).
//!
//! The models have to fail with it, or the `races` programs under ThreadSanitizer. Otherwise a line in `mutants/orderings.txt` says why
//! no test can, or where else the order is shown to be needed.
//!
//! All mutants are in one build. In a copy of the sources each order is a call that answers with
//! the weaker one when its mutant was chosen by an environment variable. So a mutant costs no
//! compiler.

mod caught;
mod lines;
mod scan;
mod sources;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use self::caught::Caught;
use self::lines::Line;
use self::scan::{Constants, Place};
use self::trials::{Outcome, Trials};
use crate::packages::Package;

pub(crate) use self::lines::FILE;
pub(crate) use self::sources::of as sources;

/// The packages that all others are built on; the others use their constants.
const COMMON: [&str; 2] = ["bufcore", "bufkit"];

/// One order of one operation, made weaker.
#[derive(Debug)]
pub(crate) struct Mutant {
    package: String,
    /// As `mutants/orderings.txt` names it: function, operation, orders. The same in whichever file of the package it is.
    name: String,
    /// Where it is, for people.
    file: PathBuf,
    line: usize,
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
                files.push((package.name.clone(), path, text));
            }
        }
        let mut constants = BTreeMap::<&str, Constants>::new();
        for (package, _, text) in &files {
            constants.entry(package).or_default().extend(scan::constants(text)?);
        }
        let mut common = Constants::new();
        for package in COMMON {
            common.extend(constants.get(package).cloned().unwrap_or_default());
        }
        let mut all = Self { mutants: Vec::new(), sources: Vec::new() };
        // How often a name came before: names that are not the only ones of their kind get numbers.
        let mut times = BTreeMap::<(String, String), usize>::new();
        for (package, path, text) in &files {
            let mut known = common.clone();
            known.extend(constants[&**package].clone());
            let places = scan::places(text, &known)?;
            all.add(package, path, text, places, &mut times);
        }
        Ok(all)
    }

    fn add(
        &mut self,
        package: &str,
        path: &std::path::Path,
        text: &str,
        places: Vec<Place>,
        times: &mut BTreeMap<(String, String), usize>,
    ) {
        let mut with_numbers = Vec::new();
        for place in places {
            let line = text[..place.at.start].lines().count();
            let mut numbers = Vec::new();
            for weaker in place.weaker() {
                let mut name = name(&place, weaker);
                let times = times.entry((package.to_owned(), name.clone())).or_default();
                *times += 1;
                if *times > 1 {
                    name = format!("{name} #{times}");
                }
                numbers.push(self.mutants.len());
                let (package, file) = (package.to_owned(), path.to_owned());
                self.mutants.push(Mutant { package, name, file, line });
            }
            with_numbers.push((place, numbers));
        }
        let (path, text) = (path.to_owned(), text.to_owned());
        self.sources.push(Source { path, text, places: with_numbers });
    }

    /// What is wrong with the checked-in lines, which read `text`: the number of the line and what it is.
    pub(crate) fn check(&self, text: &str) -> Vec<(usize, String)> {
        let (lines, mut wrong) = lines::parse(text);
        let known: BTreeSet<_> = self.mutants.iter().map(|one| (&*one.package, &*one.name)).collect();
        let mut seen = BTreeSet::new();
        for line in &lines {
            let name = (&*line.package, &*line.name);
            if !known.contains(&name) {
                wrong.push((line.number, format!("no order in {} is `{}`", line.package, line.name)));
            } else if !seen.insert(name) {
                wrong.push((line.number, format!("two lines for `{}` of {}", line.name, line.package)));
            }
        }
        wrong
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
    let packages = crate::packages::published()?;
    let orderings = Orderings::of(&packages)?;
    let text = std::fs::read_to_string(FILE)?;
    if let Some((line, message)) = orderings.check(&text).into_iter().next() {
        bail!("{FILE}:{line}: {message}");
    }
    let (lines, _) = lines::parse(&text);
    let line_of = |mutant: &Mutant| {
        lines.iter().find(|line| (&line.package, &line.name) == (&mutant.package, &mutant.name))
    };
    let is_chosen = |mutant: &Mutant| {
        chosen.is_none_or(|package| package == mutant.package)
            && (named.is_empty() || named.iter().any(|part| mutant.name.contains(&**part)))
    };
    let numbers: Vec<usize> =
        (0..orderings.mutants.len()).filter(|&at| is_chosen(&orderings.mutants[at])).collect();
    ensure!(!numbers.is_empty(), "no such order; `cargo xtask broken --orderings --list` shows them all");
    let mut counts = Counts::default();
    let mut tried = Vec::new();
    for at in numbers {
        let mutant = &orderings.mutants[at];
        let verdict = line_of(mutant).map(|Line { verdict, .. }| verdict.word());
        if only_list {
            let Mutant { package, name, file, line } = mutant;
            println!("{package} {name} ({}:{line}) {}", file.display(), verdict.unwrap_or_default());
        } else if let Some(word) = verdict {
            counts.note(&mutant.package, word);
        } else {
            tried.push(at);
        }
    }
    if only_list { Ok(()) } else { orderings.find(&packages, tried, counts) }
}

impl Orderings {
    /// Tries the mutants with the numbers `tried`, and prints all `counts` then.
    ///
    /// # Errors
    ///
    /// When one survives.
    fn find(&self, packages: &[Package], tried: Vec<usize>, mut counts: Counts) -> Result<()> {
        let mut caught = Caught::read(packages)?;
        let mut left = Vec::new();
        for at in tried {
            let Mutant { package, name, .. } = &self.mutants[at];
            match caught.outcome(package, name) {
                Some(outcome) => {
                    println!("{package} {name}: {outcome}, by an earlier run");
                    counts.note(package, outcome.word());
                }
                None => left.push(at),
            }
        }
        let mut survived = Vec::new();
        let mut noted = Ok(());
        Trials::new(self, packages)?.run(&left, |at, outcome, took| {
            let Mutant { package, name, file, line } = &self.mutants[at];
            println!("{package} {name}: {outcome} ({took:.1} s)");
            counts.note(package, outcome.word());
            if let Outcome::Survived { .. } = outcome {
                survived.push(format!("{package} {name} ({}:{line}): {outcome}", file.display()));
            } else if let Err(error) = caught.note(package, name, outcome) {
                noted = Err(error);
            }
        })?;
        noted?;
        counts.print();
        ensure!(
            survived.is_empty(),
            "{} orders may be weaker, for all that is seen:\n{}",
            survived.len(),
            survived.join("\n")
        );
        Ok(())
    }
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
