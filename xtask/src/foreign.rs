//! `cargo xtask foreign`: the tests of other crates, unchanged, in programs that have `bufalloc` as their global allocator.
//!
//! The sources are those of the registry, which cargo fetches. They are copied, and each test program has one item more at its end: it links
//! the package `line`, which has the allocator. At its end a program says how many bytes of large blocks it had.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{MetadataCommand, TargetKind};

use crate::shell::{self, cargo, command};
use crate::steps::{Outcome, Steps};

/// A crate's tests.
#[derive(Debug)]
struct Suite {
    name: &'static str,
    version: &'static str,
    features: &'static str,
    /// Tests that fail with every allocator, by parts of their names.
    skipped: &'static [&'static str],
}

const SUITES: [Suite; 5] = [
    Suite { name: "bytes", version: "1.12.2", features: "serde", skipped: &[] },
    Suite { name: "hashbrown", version: "0.17.1", features: "rayon,serde", skipped: &[] },
    // The last whose package has all files that its tests read. Its parser is a newer one, which knows what these expect to be refused.
    Suite { name: "regex", version: "1.8.4", features: "", skipped: &["match_basic_137", "regex_fails"] },
    Suite {
        name: "serde_json",
        version: "1.0.154",
        features: "preserve_order,raw_value,unbounded_depth",
        skipped: &[],
    },
    // As root, a program may look into every folder.
    Suite { name: "tokio", version: "1.54.1", features: "full,test-util", skipped: &["try_exists"] },
];

/// What a program says of the line, with the bytes between.
const SAID: (&str, &str) = ("the line had ", " bytes");

/// Options of `foreign`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The crates whose tests run; without any, those of all run.
    crates: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        for name in &self.crates {
            ensure!(SUITES.iter().any(|suite| suite.name == name), "no suite of a crate `{name}`");
        }
        if !cfg!(target_os = "linux") {
            Outcome::Skipped("programs say what they had on Linux only".to_owned()).report();
            return Ok(());
        }
        let chosen: Vec<_> = SUITES
            .iter()
            .filter(|suite| self.crates.is_empty() || self.crates.iter().any(|name| name == suite.name))
            .collect();
        let folder = shell::target_folder().join("foreign");
        let sources = fetch(&folder)?;
        let mut steps = Steps::new("foreign", chosen.len());
        for suite in chosen {
            steps.step(suite.name, || {
                suite.test(&folder, &sources)?;
                Ok(Outcome::Passed)
            });
        }
        steps.finish()
    }
}

/// Has cargo fetch the sources of all suites, and returns what it says of them.
fn fetch(folder: &Path) -> Result<Vec<cargo_metadata::Package>> {
    let wanted = folder.join("wanted");
    fs::create_dir_all(wanted.join("src")).with_context(|| format!("cannot make {}", wanted.display()))?;
    let lines = SUITES.iter().map(|Suite { name, version, .. }| format!("{name} = \"={version}\"\n"));
    let package = "[package]\nname = \"wanted\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
    let manifest = format!("{package}\n[dependencies]\n{}\n[workspace]\n", lines.collect::<String>());
    fs::write(wanted.join("Cargo.toml"), manifest)?;
    fs::write(wanted.join("src/lib.rs"), "")?;
    let metadata = MetadataCommand::new().current_dir(&wanted).exec();
    Ok(metadata.context("cannot fetch the sources")?.packages)
}

impl Suite {
    fn test(&self, folder: &Path, sources: &[cargo_metadata::Package]) -> Result<()> {
        let Self { name, version, features, skipped } = self;
        let is_it = |source: &&cargo_metadata::Package| {
            source.name.as_str() == *name && source.version.to_string() == *version
        };
        let source = sources.iter().find(is_it).with_context(|| format!("no sources of {name}"))?;
        let copy = folder.join(name);
        let own = self.add_line(source, &copy)?;
        let mut tests = cargo();
        tests.args(["test", "--no-fail-fast", "--lib", "--tests", "--features", features]).current_dir(&copy);
        tests.args(["--target-dir", "../built"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
        tests.arg("--").args(skipped.iter().flat_map(|test| ["--skip", test]));
        let text = shell::run_tests(&mut tests)?;
        let (programs, bytes) = (programs_with_tests(&text), had(&text)?);
        let expected = programs - own.len().min(programs);
        println!(
            "foreign: {name} {version}: {programs} programs with tests, {} of them with the line, which had {} MiB together; {} with \
             an allocator of their own",
            bytes.len(),
            bytes.iter().sum::<u64>() >> 20,
            own.len()
        );
        ensure!(expected > 0 && bytes.len() >= expected, "not all programs have the line");
        ensure!(bytes.iter().all(|bytes| *bytes > 0), "a program had no large blocks");
        Ok(())
    }

    /// Copies the sources, and links the line to each test program. Returns the files of programs with an allocator of their own.
    fn add_line(&self, source: &cargo_metadata::Package, copy: &Path) -> Result<Vec<PathBuf>> {
        let from = source.manifest_path.parent().context("a manifest is in a folder")?.as_std_path();
        if copy.exists() {
            fs::remove_dir_all(copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        }
        shell::run(&mut command!("cp -r {from} {copy}"))?;
        let line = fs::canonicalize("testing/line")?;
        // What else the tests link depends on the copy, too, which the lock file that comes with it does not have.
        drop(fs::remove_file(copy.join("Cargo.lock")));
        let name = self.name;
        let more = format!(
            "\n[dev-dependencies.line]\npath = {line:?}\n\n[workspace]\n\n[patch.crates-io]\n{name} = {{ path = \".\" }}\n"
        );
        append(&copy.join("Cargo.toml"), &more)?;
        let mut own = Vec::new();
        for target in &source.targets {
            let item = match target.kind.first() {
                Some(TargetKind::Lib) => "\n#[cfg(test)]\nextern crate line as _;\n",
                Some(TargetKind::Test) => "\nextern crate line as _;\n",
                _ => continue,
            };
            let file = copy.join(target.src_path.as_std_path().strip_prefix(from)?);
            if fs::read_to_string(&file)?.contains("#[global_allocator]") {
                own.push(file);
            } else {
                append(&file, item)?;
            }
        }
        Ok(own)
    }
}

fn append(file: &Path, text: &str) -> Result<()> {
    let before = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::write(file, before + text)?;
    Ok(())
}

/// How many programs ran tests.
fn programs_with_tests(text: &str) -> usize {
    let counts = text.lines().filter_map(|line| line.strip_prefix("running ")?.split(' ').next());
    counts.filter(|count| *count != "0").count()
}

/// The bytes that each program said that the line had.
fn had(text: &str) -> Result<Vec<u64>> {
    let said = text.lines().filter_map(|line| line.strip_prefix(SAID.0)?.strip_suffix(SAID.1));
    said.map(|bytes| bytes.parse().with_context(|| format!("`{bytes}` bytes"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_bytes_are_counted() {
        let text = "running 0 tests\nrunning 1 test\nthe line had 4096 bytes\nrunning 12 tests\nthe line had 0 bytes\n";
        assert_eq!(programs_with_tests(text), 2);
        assert_eq!(had(text).unwrap(), [4096, 0]);
        assert!(had("the line had no bytes").is_err());
    }
}
