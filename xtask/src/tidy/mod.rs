//! `cargo xtask tidy`: what the compiler does not check.

mod examples;
mod lex;
mod links;
mod manifests;
mod mutants;
mod orderings;
mod source;
mod thresholds;
mod workflow;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::examples::Types;
use self::source::Part;
use crate::ci::Job;
use crate::{packages, strategies};

/// Folders that hold none of our files: build outputs, wherever they are, and two at the root.
const FOREIGN: [&str; 3] = ["target", "./.git", "./shared"];
/// Endings of the files that people write.
const TEXT: [&str; 8] = ["rs", "toml", "md", "yml", "yaml", "sh", "lua", "html"];

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
        let mut found = Vec::new();
        let mut files = Vec::new();
        collect(Path::new("."), &mut files)?;
        let types = Types::read(&packages)?;
        for file in &files {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(".").unwrap_or(file);
            let package = packages.iter().find(|package| package.has_source(name));
            let mut findings = source::check(name, &text, package.map(Part::of).unwrap_or_default());
            if let Some(package) = package {
                findings.extend(types.check(package, &text));
            }
            found.extend(findings.into_iter().map(|finding| (name.to_owned(), finding)));
        }
        for package in &packages {
            let manifest = package.folder.join("Cargo.toml");
            let findings = manifests::check(package, &packages);
            found.extend(findings.into_iter().map(|finding| (manifest.clone(), finding)));
        }
        let missing = strategies::missing(&packages)?.into_iter();
        found.extend(missing.map(|(place, message)| (PathBuf::from(place), Finding::at(0, message))));
        let (faulty, mutants) = mutants::check_all(&packages)?;
        found.extend(faulty);
        let (faulty, orders) = orderings::check(&packages)?;
        found.extend(faulty.into_iter().map(|finding| (PathBuf::from(crate::orderings::FILE), finding)));
        let (file, faulty) = thresholds::check(&packages, self.thresholds)?;
        found.extend(faulty.into_iter().map(|finding| (file.clone(), finding)));
        let workflow = fs::read_to_string(workflow::FILE).context("cannot read the workflow")?;
        let jobs = Job::each().map(Job::name).collect::<Result<Vec<_>>>()?;
        let findings = workflow::check(&workflow, &jobs);
        found.extend(findings.into_iter().map(|finding| (PathBuf::from(workflow::FILE), finding)));
        report(&found, files.len())?;
        println!(
            "tidy: {} files, {} packages, {mutants} known defects, {orders} weaker orders, nothing found",
            files.len(),
            packages.len()
        );
        Ok(())
    }
}

/// Checks the links of all Markdown texts to the documentation that cargo made in `folder`.
pub(crate) fn check_documentation(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    collect(Path::new("."), &mut files)?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "md"));
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let findings = links::check_documentation(&text, folder);
        found.extend(findings.into_iter().map(|finding| (file.clone(), finding)));
    }
    report(&found, files.len())
}

/// Prints what was found in `files` files, and fails if it is anything.
fn report(found: &[(PathBuf, Finding)], files: usize) -> Result<()> {
    for (file, Finding { line, message }) in found {
        println!("{}:{line}: {message}", file.display());
    }
    ensure!(found.is_empty(), "tidy: {} finding(s) in {files} files", found.len());
    Ok(())
}

/// Lists our text files under `folder`, in order of their names. Links are not followed.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("cannot list {}", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !FOREIGN.iter().any(|foreign| entry.file_name() == *foreign || path == Path::new(foreign)) {
                collect(&path, files)?;
            }
        } else if kind.is_file() {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_script = ending.is_none() && path.starts_with("./.ci");
            if is_script || ending.is_some_and(|ending| TEXT.contains(&ending)) {
                files.push(path);
            }
        }
    }
    Ok(())
}
