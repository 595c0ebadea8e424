//! `cargo xtask features`: each package builds with none, each and all of its features, and passes its tests with those that
//! change what a pool does.
//!
//! So each two features are there together, without each other, and not at all.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::packages::{self, Package};
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};
use crate::strategies::{self, Strategy};
use crate::test::{default_env, skip_long};
use crate::tools;

/// The version of cargo-hack that is built where none is installed.
const HACK: &str = "0.6.45";
/// Features with which a package's own code behaves differently; others add items. A feature that brings a strategy is one too.
const CHANGING: [&str; 6] = ["alloc", "fences", "std", "stats", "track", "wipe"];
/// The tests whose outcome, or whose being there, depends on features: the suite, and refused allocations, which the bookkeeping of some
/// features does not survive, so that with all features there is no such test.
const SUITES: [&str; 2] = ["it", "oom"];

/// A test build is one of some fifty, and has less traffic and fewer programs than the others. Not less than this: a trial that saw
/// no memory used twice says that it showed nothing.
pub(crate) const SHORT: [(&str, &str); 5] = [
    ("BUFTEST_COUNT", "5000"),
    ("BUFTEST_CASES", "8"),
    ("BUFTEST_SOAK_SECONDS", "0"),
    ("BUFTEST_STEADY_SECONDS", "1"),
    ("PROPTEST_CASES", "8"),
];

type Set = BTreeSet<String>;

/// Options of `features`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Check and test only this package.
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let mut packages = packages::published()?;
        packages.retain(|package| self.package.as_ref().is_none_or(|name| *name == package.name));
        ensure!(!packages.is_empty(), "no such package is published");
        check(&packages)
    }
}

/// Builds and tests `packages`.
pub(crate) fn check(packages: &[Package]) -> Result<()> {
    let strategies = strategies::all(&packages::all()?)?;
    let mut steps = Steps::new("features", 1 + packages.len());
    steps.step("none, each and all", || {
        let mut command = hack()?;
        // Only the libraries: dev-dependencies would turn features on that a set leaves off.
        command.args(["check", "--quiet", "--lib", "--each-feature", "--target-dir", "target/features"]);
        command.args(packages.iter().flat_map(|package| ["--package", &package.name]));
        shell::run(command.env("RUSTFLAGS", "-D warnings"))?;
        Ok(Outcome::Passed)
    });
    for package in packages {
        let sets = tested(package, &strategies);
        steps.step(&format!("test {}, {} sets", package.name, sets.len()), || {
            sets.iter().try_for_each(|set| test_one(package, set))?;
            Ok(Outcome::Passed)
        });
    }
    steps.finish()
}

/// `cargo hack`.
fn hack() -> Result<Command> {
    let mut installed = cargo();
    if shell::works(cargo().args(["hack", "--version"])) {
        installed.arg("hack");
        return Ok(installed);
    }
    let mut built = Command::new(tools::installed("cargo-hack", HACK)?);
    built.arg("hack");
    Ok(built)
}

/// The unit tests, the suites, and, with no feature, the documentation. What else has a program of its own does not depend on features
/// so much that `cargo xtask test` with all of them would not do.
fn test_one(package: &Package, set: &Set) -> Result<()> {
    let features = set.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let has_all = |name: &&str| {
        let needs = package.test(name).map(|suite| &suite.required_features);
        needs.is_some_and(|needs| needs.iter().all(|feature| set.contains(feature)))
    };
    let suites = SUITES.into_iter().filter(has_all).flat_map(|name| ["--test", name]);
    let programs: Vec<_> = ["--lib"].into_iter().chain(suites).collect();
    for chosen in [&programs[..], &["--doc"]].into_iter().take(1 + usize::from(set.is_empty())) {
        let mut command = cargo();
        command.args(["test", "--quiet", "--no-default-features", "--target-dir", "target/features"]);
        command.args(["--package", &package.name, "--features", &features]).args(chosen);
        SHORT.iter().for_each(|(name, value)| default_env(&mut command, name, value));
        skip_long(command.arg("--"));
        // Built some fifty times, and read by nobody.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        shell::run_tests(command.env("RUSTFLAGS", "-D warnings").env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// The sets that are tested here: no feature, and each that changes something. `cargo xtask test` tests all of them together.
fn tested(package: &Package, strategies: &[Strategy]) -> BTreeSet<Set> {
    let changes = |name: &&String| {
        let is_strategy = |name: &str| strategies.iter().any(|strategy| strategy.package == name);
        let brings = |one: &String| one.strip_prefix("dep:").is_some_and(is_strategy);
        CHANGING.contains(&name.as_str()) || package.features[*name].iter().any(brings)
    };
    let alone = package.features.keys().filter(changes).map(|name| closure(package, name));
    [Set::new()].into_iter().chain(alone).collect()
}

/// A feature with all that it turns on in its own package.
fn closure(package: &Package, name: &str) -> Set {
    let (mut closed, mut open) = (Set::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        // A name that is not a feature of this package is one of a dependency, which follows from ours.
        if let Some(turns_on) = package.features.get(&name)
            && closed.insert(name)
        {
            open.extend(turns_on.iter().cloned());
        }
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_each_that_changes_something_are_tested() {
        let list = [
            ("std", vec!["alloc", "other?/std"]),
            ("alloc", vec![]),
            ("ring", vec!["dep:bufring"]),
            ("serde", vec!["dep:serde"]),
        ];
        let features = list
            .map(|(name, turns_on)| (name.to_owned(), turns_on.iter().map(|&on| on.to_owned()).collect()));
        let package = Package { features: features.into(), ..Package::default() };
        let ring = Strategy { name: "ring".to_owned(), package: "bufring".to_owned() };
        let sets: Vec<_> = tested(&package, &[ring])
            .iter()
            .map(|set| set.iter().cloned().collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(sets, ["", "alloc", "alloc,std", "ring"]);
    }
}
