//! `cargo xtask ci cross` and `emulate`: other systems and processors, type-checked or, where their programs can be run here, tested.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};

use crate::compilers::{self, Library};
use crate::features::SHORT;
use crate::packages::{self, Package};
use crate::shell::{self, command};
use crate::steps::{Outcome, Steps};
use crate::strategies;
use crate::test::{default_env, skip_long, some_ran};

/// Platforms that are type-checked. `emulate` builds for others what it does not test there.
const CHECKED: [&str; 2] = ["aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];
/// The one of them for which the suites are type-checked too. `emulate` runs them for others.
const CHECKED_WITH_SUITES: &str = "aarch64-apple-darwin";
/// Platforms that are type-checked where the toolchain has their library.
const IF_INSTALLED: [&str; 2] = ["x86_64-pc-windows-msvc", "x86_64-unknown-linux-musl"];

/// A platform whose programs run here.
struct Emulated {
    platform: &'static str,
    /// Whether its programs need another one that runs them.
    needs_runner: bool,
    /// Whether its programs need that also where they start each other.
    children_need_runner: bool,
    /// Whether `bufcore` is optimised, because programs run for longer than that takes.
    optimises: bool,
    /// Whether the tests inside of the strategies that map memory are run too.
    tests_mappings: bool,
    /// Whether all published libraries are type-checked for it, with all features. (Programs are, for the
    /// platforms of `cross`.)
    checks_all: bool,
    /// Whether the strategies are tested there, and not only the packages that are tested everywhere.
    tests_strategies: bool,
    /// Tests that measure what an emulator changes, or take minutes in one.
    skips: &'static [&'static str],
}

/// 32 bits, the other order of bytes, and another system.
const EMULATED: [Emulated; 3] = [
    Emulated {
        platform: "i686-unknown-linux-gnu",
        needs_runner: false,
        children_need_runner: false,
        optimises: false,
        tests_mappings: false,
        checks_all: true,
        tests_strategies: true,
        skips: &[
            // The limit is that of 64 bits.
            "room::resident_after_many_buffers_by_default",
        ],
    },
    Emulated {
        platform: "s390x-unknown-linux-gnu",
        needs_runner: true,
        children_need_runner: true,
        optimises: true,
        tests_mappings: false,
        checks_all: false,
        // They store numbers as the processor does, in memory that no other program reads.
        tests_strategies: false,
        skips: &[
            "t12_",
            "t17_",
            "t18_",
            // Children of processes with threads end in the emulator itself.
            "t25_refused_calls",
            // Limits and signals of the emulator's own.
            "t25_no_address_space",
            "t25_signals",
            "::resident_",
            // The group has to hold the emulator too.
            "pressure::of_a_group_that_is_made_for_it",
            // The emulator takes the old place of pages that moved for unmapped.
            "pages::threads_take_and_give_each_others_spans",
        ],
    },
    Emulated {
        platform: "x86_64-pc-windows-gnu",
        needs_runner: true,
        children_need_runner: false,
        optimises: false,
        tests_mappings: true,
        checks_all: true,
        tests_strategies: true,
        skips: &[],
    },
];

/// What a manifest says of a package whose suite runs on every platform.
const EVERYWHERE: &str = "everywhere";
/// What a manifest says of a package whose suite needs memory that the system maps twice.
const MAPS_TWICE: &str = "maps-twice";

/// The packages whose suites are for other platforms as well.
fn suites(tests_strategies: bool, tests_mappings: bool) -> Result<Vec<String>> {
    let packages = packages::all()?;
    let strategies = strategies::all(&packages)?;
    let is_strategy = |package: &Package| strategies.iter().any(|one| one.package == package.name);
    let is_tested = |package: &&Package| {
        package.is(EVERYWHERE)
            || tests_strategies && is_strategy(package) && (tests_mappings || !package.is(MAPS_TWICE))
    };
    Ok(packages.iter().filter(is_tested).map(|package| package.name.clone()).collect())
}

/// Type-checks the published packages for other platforms.
pub(crate) fn cross() -> Result<Outcome> {
    let host = shell::host_triple()?;
    let packages = packages::published()?;
    let mut platforms: Vec<_> = CHECKED.into_iter().filter(|platform| *platform != host).collect();
    for platform in IF_INSTALLED {
        if platform != host && compilers::has_library(platform)? {
            platforms.push(platform);
        }
    }
    let suites = suites(true, true)?;
    let mut steps = Steps::new("cross", platforms.len());
    let mut checked = 0;
    for platform in platforms {
        steps.step(&format!("types, {platform}"), || {
            let with_suites = platform == CHECKED_WITH_SUITES;
            let library = if with_suites { Library::Test } else { Library::Std };
            let check = |what: &[&str], packages: &mut dyn Iterator<Item = &str>| {
                let Some(mut command) = compilers::cargo_for(platform, library)? else { return Ok(false) };
                command.arg("check").args(what);
                command.args(["--target", platform, "--target-dir", "target/cross"]);
                for package in packages {
                    command.args(["--package", package]);
                }
                shell::run(command.env("RUSTFLAGS", "-Dwarnings")).map(|()| true)
            };
            let mut published = packages.iter().map(|package| package.name.as_str());
            if !check(&["--lib", "--all-features"], &mut published)? {
                return Outcome::skipped(compilers::MISSING);
            }
            if with_suites {
                check(&["--test", "it"], &mut suites.iter().map(String::as_str))?;
            }
            checked += 1;
            Ok(Outcome::Passed)
        });
    }
    steps.finish()?;
    if checked == 0 {
        return Outcome::skipped(compilers::MISSING);
    }
    Ok(Outcome::Passed)
}

/// Runs conformance suites on other processors.
pub(crate) fn emulate() -> Result<Outcome> {
    let mut steps = Steps::new("emulate", EMULATED.len());
    let mut ran = 0;
    for emulated in &EMULATED {
        steps.step(emulated.platform, || {
            let outcome = emulated.test()?;
            ran += usize::from(matches!(outcome, Outcome::Passed));
            Ok(outcome)
        });
    }
    steps.finish()?;
    if ran == 0 {
        return Outcome::skipped("no program of another processor can be linked and run");
    }
    Ok(Outcome::Passed)
}

impl Emulated {
    fn test(&self) -> Result<Outcome> {
        let [linker, runner] = ["LINKER", "RUNNER"].map(|what| compilers::variable(self.platform, what));
        let Some(links) = env::var_os(&linker) else {
            return Outcome::skipped(format!("{linker} names no linker (`.ci/env`)"));
        };
        let runs = env::var_os(&runner);
        if self.needs_runner && runs.is_none() {
            return Outcome::skipped(format!("{runner} names no emulator (`.ci/env`)"));
        }
        if !self.runs(&links, runs.as_deref())? {
            return Outcome::skipped(format!("{} links no program that runs here", links.display()));
        }
        let Some(mut command) = self.cargo("test")? else {
            return Outcome::skipped(compilers::MISSING);
        };
        command.args(["--no-fail-fast", "--test", "it"]);
        for package in suites(self.tests_strategies, self.tests_mappings)? {
            command.args(["--package", &package]);
        }
        command.arg("--").args(self.skips.iter().flat_map(|test| ["--skip", test]));
        skip_long(&mut command);
        self.run(&mut command, runs.as_deref())?;
        if self.tests_mappings
            && let Some(mut command) = self.cargo("test")?
        {
            command.arg("--lib");
            for package in packages::all()?.iter().filter(|package| package.is(MAPS_TWICE)) {
                command.args(["--package", &package.name]);
            }
            self.run(&mut command, runs.as_deref())?;
        }
        if self.checks_all
            && let Some(mut command) = self.cargo("check")?
        {
            command.args(["--lib", "--all-features"]);
            for library in packages::published()?.iter().filter(|package| !package.is_program()) {
                command.args(["--package", &library.name]);
            }
            shell::run(&mut command)?;
        }
        Ok(Outcome::Passed)
    }

    /// Runs tests, of which there have to be some.
    fn run(&self, command: &mut Command, runner: Option<&OsStr>) -> Result<()> {
        // Cargo reads the two variables. Trials that run alone start the emulator by themselves.
        if self.children_need_runner {
            command.envs(runner.map(|runner| ("BUFTEST_RUNNER", runner)));
        }
        for (name, value) in SHORT {
            default_env(command, name, value);
        }
        some_ran(&shell::run_tests(command)?)
    }

    /// Cargo's command `what` for this platform. All of them use one folder, and so one standard library.
    fn cargo(&self, what: &str) -> Result<Option<Command>> {
        let Some(mut command) = compilers::cargo_for(self.platform, Library::Test)? else { return Ok(None) };
        command.args([what, "--target", self.platform, "--target-dir", "target/emulate"]);
        // Built once, and read by nobody.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        if self.optimises {
            command.args(["--config", "profile.dev.package.bufcore.opt-level=1"]);
        }
        // No loader of the platform's has to be found.
        command.env("RUSTFLAGS", "-Dwarnings -Ctarget-feature=+crt-static");
        Ok(Some(command))
    }

    /// Whether a program can be linked and run: the smallest is.
    fn runs(&self, linker: &OsStr, runner: Option<&OsStr>) -> Result<bool> {
        let folder = shell::target_folder().join("emulate");
        std::fs::create_dir_all(&folder)?;
        let (source, program) =
            (folder.join("nothing.c"), folder.join(self.platform).with_extension("nothing"));
        std::fs::write(&source, "int main(void) { return 0; }\n")
            .context("cannot write a program of nothing")?;
        let linked = shell::works(&mut command!("{linker} -static {source} -o {program}"));
        let mut command = Command::new(runner.unwrap_or(program.as_os_str()));
        command.args(runner.map(|_| &program));
        Ok(linked && shell::works(&mut command))
    }
}

#[cfg(test)]
mod tests {
    use super::suites;

    #[test]
    fn manifests_say_what_a_platform_runs() {
        let [all, unmapped, everywhere] = [(true, true), (true, false), (false, true)]
            .map(|(tested, mapped)| suites(tested, mapped).unwrap());
        assert!(all.contains(&"bufslot".to_owned()) && all.contains(&"bufmirror".to_owned()));
        assert!(unmapped.contains(&"bufslot".to_owned()) && !unmapped.contains(&"bufmirror".to_owned()));
        assert!(everywhere.contains(&"bufcore".to_owned()) && !everywhere.contains(&"bufslot".to_owned()));
    }
}
