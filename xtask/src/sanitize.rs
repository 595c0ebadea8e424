//! `cargo xtask sanitize`: the tests under AddressSanitizer, and the trials that hand memory over under ThreadSanitizer.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::packages::{self, Package};
use crate::shell;
use crate::steps::{Outcome, Steps};
use crate::test::{SHORT, default_env, some_ran};

/// Reports that are the tool's mistake, each with its reason.
const TSAN_SUPPRESSIONS: &str = "xtask/tsan-suppressions.txt";

/// Trials about resident and locked memory and limits of the address space: AddressSanitizer's shadow memory distorts the ones,
/// and it makes `mlock` and `mallopt` do nothing. A search of the process's memory: the tool's own is far larger.
const DISTORTED: [&str; 20] = [
    // More addresses than are left beside a shadow of them.
    "batches::batches_of_more_bytes_than_a_number_has",
    "t12_",
    "regions::t17_",
    "t18_",
    "t19_",
    "t39_",
    "t26_",
    "t25_no_address_space",
    "t25_refused_calls",
    "heap::alignment_is_not_filled",
    "pressure::of_a_group_that_is_made_for_it",
    "room::mapped::",
    "mapped::as_the_options_say",
    "mapped::unless_set",
    "mapped::locks_that_are_refused",
    "mapped::the_budget_is_what_is_resident",
    "mapped::the_end_gives_back",
    "mapped::trims_reach_the_system",
    "::resident",
    "t35_",
];

/// How all of our code is built for AddressSanitizer, and where.
pub(crate) const ADDRESS_FLAGS: &str = "-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer";
pub(crate) const ADDRESS_FOLDER: &str = "target/sanitize-address";
pub(crate) const THREAD_FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsan";

/// What ThreadSanitizer is told: the first report is enough. In quotes, as the path may have a space in it.
pub(crate) fn thread_options() -> Result<String> {
    let known = fs::canonicalize(TSAN_SUPPRESSIONS)?;
    Ok(format!("halt_on_error=1:allocator_may_return_null=1:suppressions=\"{}\"", known.display()))
}

/// Whether the sanitizers run on this system.
pub(crate) fn is_possible(host: &str) -> bool {
    (host.starts_with("x86_64-") || host.starts_with("aarch64-")) && host.ends_with("-linux-gnu")
}

/// A sanitizer of the compiler's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    /// Find accesses out of bounds or after the free, and leaks.
    Address,
    /// Find data races.
    Thread,
}

/// Options of `sanitize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The sanitizer; without one, both run.
    #[arg(value_enum)]
    which: Option<Sanitizer>,
    /// Arguments for the tests that AddressSanitizer runs, as after `cargo test -- …`.
    #[arg(last = true)]
    test_args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let chosen = self.which.map_or_else(|| Sanitizer::ALL.to_vec(), |one| vec![one]);
        check(&chosen, &self.test_args).map(Outcome::report)
    }
}

/// Runs the tests of all published packages under each of `sanitizers`.
pub(crate) fn check(sanitizers: &[Sanitizer], test_args: &[String]) -> Result<Outcome> {
    if shell::cargo_of("nightly").is_none() {
        return Outcome::skipped("no nightly toolchain installed");
    }
    let host = shell::host_triple()?;
    if !is_possible(&host) {
        return Outcome::skipped(format!("no sanitizers for {host}"));
    }
    let mut steps = Steps::new("sanitize", sanitizers.len());
    for sanitizer in sanitizers {
        steps.step(sanitizer.name(), || {
            sanitizer.run(&host, test_args)?;
            Ok(Outcome::Passed)
        });
    }
    steps.finish()?;
    Ok(Outcome::Passed)
}

impl Sanitizer {
    pub(crate) const ALL: [Self; 2] = [Self::Address, Self::Thread];

    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }

    fn run(self, host: &str, test_args: &[String]) -> Result<()> {
        let packages = packages::published()?;
        match self {
            Self::Address => self.suite(host, &packages, test_args)?,
            // Not the suite: the test harness, scopes and locks order threads in precompiled parts of the standard library, which
            // ThreadSanitizer does not see, so that what it reports there is chance. `races` uses none of them.
            Self::Thread => {}
        }
        // With the default features nothing but the strategy itself orders what threads do; counters and trackers would.
        // AddressSanitizer does not look at orders, so all features are enough.
        let sets = [Some("--all-features"), None];
        for features in sets.into_iter().take(if self == Self::Address { 1 } else { 2 }) {
            let mut races = self.cargo_test(host)?;
            default_env(&mut races, "BUFTEST_COUNT", "20000");
            races.args(["--no-fail-fast", "--test", "races"]).args(features);
            for package in &packages {
                let Some(program) = package.test("races") else { continue };
                races.args(["--package", &package.name]);
                for feature in &program.required_features {
                    races.arg("--features").arg(format!("{}/{feature}", package.name));
                }
            }
            shell::run_tests(&mut races)?;
        }
        Ok(())
    }

    /// Unit tests and the shared trials; the tests of failing allocators are other programs, which bring an allocator of their own.
    fn suite(self, host: &str, packages: &[Package], test_args: &[String]) -> Result<()> {
        let mut suite = self.cargo_test(host)?;
        // A place that is wrong shows at its first turn; `long` and `broken` have more of them.
        for (name, value) in SHORT {
            default_env(&mut suite, name, value);
        }
        suite.args(["--all-features", "--no-fail-fast", "--lib"]);
        // A program brings many crates of others along, and its unit tests touch no memory of a pool's.
        for library in packages.iter().filter(|package| !package.is_program()) {
            suite.args(["--package", &library.name]);
        }
        if packages.iter().any(|package| package.test("it").is_some()) {
            suite.args(["--test", "it"]);
        }
        suite.arg("--").args(test_args);
        suite.args(DISTORTED.iter().flat_map(|trial| ["--skip", trial]));
        some_ran(&shell::run_tests(&mut suite)?)
    }

    /// `cargo test` with all of our code instrumented. The standard library is the precompiled one, without.
    pub(crate) fn cargo_test(self, host: &str) -> Result<Command> {
        let mut command = shell::cargo_of("nightly").context("no nightly toolchain installed")?;
        command.args(["test", "--target", host]);
        let (folder, flags) = match self {
            Self::Address => (ADDRESS_FOLDER, ADDRESS_FLAGS),
            Self::Thread => ("target/sanitize-thread", THREAD_FLAGS),
        };
        command.args(["--target-dir", folder]).env("RUSTFLAGS", flags);
        self.options(&mut command)?;
        Ok(command)
    }

    /// Tells the programs that `command` runs how to go about it, unless our caller has.
    pub(crate) fn options(self, command: &mut Command) -> Result<()> {
        match self {
            // Trials ask for absurd sizes. Some forget buffers on purpose, and lend static memory by leaking it; that nothing else
            // leaks is shown by the allocators that keep a ledger.
            Self::Address => {
                default_env(command, "ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0");
            }
            Self::Thread => {
                default_env(command, "TSAN_OPTIONS", &thread_options()?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A type that moved to another module would be reported again, in the few runs that come to it.
    #[test]
    fn suppressions_name_what_there_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace has a root");
        let text = fs::read_to_string(root.join(TSAN_SUPPRESSIONS)).expect("it is checked in");
        let names: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("race:"))
            .flat_map(|pattern| pattern.split(['<', '>', ' ']))
            .filter(|name| name.starts_with("buf"))
            .collect();
        assert!(!names.is_empty());
        for name in names {
            let mut path: Vec<_> = name.split("::").collect();
            let (item, package) = (path.pop().expect("it has a name"), path.remove(0));
            let file = root.join("crates").join(package).join("src").join(path.join("/"));
            let source = fs::read_to_string(file.with_extension("rs")).unwrap_or_default();
            let is_there = ["struct", "enum", "mod"].iter().any(|kind| {
                let declared = format!("{kind} {item}");
                source.lines().any(|line| line.contains(&declared) && !line.trim_start().starts_with("//"))
            });
            assert!(is_there, "{name} is not in {}", file.display());
        }
    }
}
