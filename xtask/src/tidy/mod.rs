//! `cargo xtask tidy`: what the compiler does not check.

mod examples;
mod links;
mod manifests;
mod source;
mod thresholds;
mod workflow;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::examples::Types;
use self::source::Part;
use crate::ci::Job;
use crate::orderings::{self, Orderings};
use crate::{mutants, packages, shell, strategies};

/// Options of `tidy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the list of the implementations' constants, around which the test kit draws its numbers.
    #[arg(long)]
    thresholds: bool,
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// From 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl Finding {
    fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let packages = packages::all()?;
        let strategies = strategies::all(&packages)?;
        let mut found = Vec::new();
        let mut add = |file: &Path, findings: Vec<Finding>| {
            found.extend(findings.into_iter().map(|finding| (file.to_owned(), finding)));
        };
        let files = files(&["rs", "md"])?;
        let types = Types::read(&packages)?;
        for (file, text) in &files {
            let package = packages.iter().find(|package| package.has_source(file));
            add(file, source::check(file, text, package.map(Part::of).unwrap_or_default()));
            add(file, package.map(|package| types.check(package, text)).unwrap_or_default());
        }
        for package in &packages {
            add(&package.folder.join("Cargo.toml"), manifests::check(package, &packages, &strategies));
        }
        for (place, message) in strategies::missing(&packages)? {
            add(Path::new(place), vec![Finding::at(0, message)]);
        }
        let mutants = mutants::names()?;
        for name in &mutants {
            let messages = mutants::faults(name, &packages)?.into_iter();
            add(&mutants::path(name), messages.map(|message| Finding::at(0, message)).collect());
        }
        let orderings = Orderings::of(&packages)?;
        let faults = orderings.faults()?.into_iter().map(|(line, message)| Finding::at(line, message));
        add(Path::new(orderings::FILE), faults.collect());
        let (file, findings) = thresholds::check(&packages, self.thresholds)?;
        add(&file, findings);
        let workflow = fs::read_to_string(workflow::FILE).context("cannot read the workflow")?;
        let jobs = Job::each().map(Job::name).collect::<Result<Vec<_>>>()?;
        add(Path::new(workflow::FILE), workflow::check(&workflow, &jobs));
        report(&found, files.len())?;
        println!(
            "tidy: {} files, {} packages, {} known defects, {} weaker orders, nothing found",
            files.len(),
            packages.len(),
            mutants.len(),
            orderings.count()
        );
        Ok(())
    }
}

/// The texts of our files with these endings.
fn files(endings: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let mut files = shell::files(Path::new("."))?;
    files.retain(|file| file.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one)));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file, text))
    };
    files.into_iter().map(read).collect()
}

/// Whether `c` can be part of a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Prints what was found in `files` files, and fails if it is anything.
fn report(found: &[(PathBuf, Finding)], files: usize) -> Result<()> {
    for (file, Finding { line, message }) in found {
        println!("{}:{line}: {message}", file.display());
    }
    ensure!(found.is_empty(), "tidy: {} finding(s) in {files} files", found.len());
    Ok(())
}
