//! `cargo xtask test`: everything that a change has to pass on this machine, in minutes; with `--long`, the trials in full.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::job_queue;
use crate::packages::{self, Package};
use crate::shell::{cargo, command, target_folder};
use crate::steps::Steps;
use crate::test_binaries::{self, Program, Ran};

/// What the manifest says of a package whose tests need crates of others: it is built with all of its features, and not in the release
/// build. Nor are programs: they have no trials of pools, and most of what would have to be compiled.
const HEAVY_TESTS: &str = "heavy-tests";
/// What the manifest says of a pool whose suite is soaked for longer than in the other tests. (The others are soaked by hand.)
const SOAKED: &str = "soaked";
const SOAK_SECONDS: &str = "30";
/// How much the tests of minutes do: a quarter of what finds every known defect, and a sixteenth of what `--long` does.
pub(crate) const SHORT: [(&str, &str); 4] = [
    ("BUFTEST_COUNT", "5000"),
    ("BUFTEST_CASES", "16"),
    ("BUFTEST_STEADY_SECONDS", "1"),
    ("PROPTEST_CASES", "64"),
];
/// Tests that debug builds leave to `--long`, by parts of their names: soaks, long programs, and trials that
/// measure memory or time over much traffic. Each takes seconds in a debug build.
const LONG_ONLY: [&str; 8] = [
    "t19_",
    "t39_",
    "conformance::long_programs",
    "costs::t26_late_releases",
    "every_cell_is_built_or_refused_with_a_reason",
    "monitor::text::what_a_scrape_costs",
    "room::resident_beside_vectors",
    "trace::resident_memory_of_a_server",
];
/// The tests of what must not compile. They run cargo, which keeps both processors busy.
const COMPILE_FAIL: &str = "compile_fail";
/// No program takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(1200);

/// Options of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run the trials in full, in release builds: 80 000 buffers, hundreds of generated programs, a soak of half a minute. Test the
    /// benchmark matrix with the crates that it compares.
    #[arg(long)]
    long: bool,
    /// List the tests, by package and program, and run none.
    #[arg(long)]
    list: bool,
}

/// Something to run.
#[derive(Debug)]
enum Task {
    /// Tests, or an example.
    Program(Program),
    /// The same with little traffic, without what is for `--long` alone.
    Short(Program),
    /// The soaks of a program for longer.
    Soak(Program),
    /// The examples in the documentation.
    Documentation(Vec<String>),
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        let tasks = if self.long { long()? } else { short()? };
        if self.list {
            return list(&tasks);
        }
        eprintln!("test: built in {:.0} s", started.elapsed().as_secs_f64());
        let mut steps = Steps::new("test", tasks.len());
        let mut passed = 0;
        job_queue::run(
            tasks,
            job_queue::processors(),
            |_| "",
            Task::run,
            |(name, ran)| {
                passed += ran.as_ref().map_or(0, Ran::count);
                steps.add_ran(&name, ran);
            },
        );
        let long =
            if self.long { "" } else { "trials in full, soaks, competitors: `cargo xtask test --long`; " };
        println!("left out: {long}sanitizers, models, other systems: `cargo xtask ci`");
        steps.finish()?;
        println!("{passed} passed, 0 failed");
        Ok(())
    }
}

/// Builds the tests of the workspace and its examples without optimisation, and without what brings crates of others along.
fn short() -> Result<Vec<Task>> {
    let packages = packages::all()?;
    let features = light_features(&packages);
    // Libraries and programs with unit tests are among `--tests`.
    let mut command = command!("cargo test --workspace --features {features} --tests --examples");
    let programs = test_binaries::build(&mut command, &packages)?;
    let documentation = ["--workspace", "--features", &features].map(str::to_owned).to_vec();
    Ok(in_order(programs.into_iter().map(Task::Short).chain([Task::Documentation(documentation)])))
}

/// Builds the tests that need no optimisation with all features, and all trials as they are released.
fn long() -> Result<Vec<Task>> {
    let packages = packages::all()?;
    let chosen = packages.iter().filter(|package| package.is(HEAVY_TESTS));
    let chosen = chosen.flat_map(|package| ["--package", &package.name]);
    let mut debug = command!("cargo test {chosen...} --all-features --lib --tests");
    let debug = test_binaries::build(&mut debug, &packages)?;
    let mut released = released(&[])?;
    // Optimisation changes nothing about what compiles.
    released.retain(|program| program.target != COMPILE_FAIL);
    let is_soaked =
        |program: &&Program| packages.iter().any(|one| one.name == program.package && one.is(SOAKED));
    let soaks = released.iter().filter(is_soaked).filter(|program| program.target == "it");
    let soaks: Vec<_> = soaks.cloned().map(Task::Soak).collect();
    ensure!(!soaks.is_empty(), "no suite is {SOAKED}");
    Ok(in_order(soaks.into_iter().chain(debug.into_iter().chain(released).map(Task::Program))))
}

/// Builds the trials of these packages as they are released, with all features; without any, those of all packages.
pub(crate) fn released(only: &[String]) -> Result<Vec<Program>> {
    let packages = packages::all()?;
    let is_chosen = |package: &&Package| match only {
        [] => !package.is_program() && !package.is(HEAVY_TESTS),
        only => only.contains(&package.name),
    };
    let chosen: Vec<_> = packages.iter().filter(is_chosen).map(|package| &package.name).collect();
    ensure!(only.len() <= chosen.len(), "not all of {only:?} are packages");
    let chosen = chosen.into_iter().flat_map(|name| ["--package", name]);
    let mut command = command!("cargo test --profile long --all-features --lib --tests {chosen...}");
    test_binaries::build(&mut command, &packages)
}

/// All features of all packages, as cargo takes them for a workspace, except those that a manifest calls heavy: the tests have to be built in
/// minutes.
fn light_features(packages: &[Package]) -> String {
    let of = |package: &Package| {
        let names = package.features.keys().filter(|name| !package.heavy.contains(*name));
        names.map(|name| format!("{}/{name}", package.name)).collect::<Vec<_>>()
    };
    packages.iter().flat_map(of).collect::<Vec<_>>().join(",")
}

/// Tests that take longest, or cannot run beside each other, come first: then both ends of the queue are busy to its end.
fn in_order(tasks: impl Iterator<Item = Task>) -> Vec<Task> {
    let mut tasks: Vec<_> = tasks.collect();
    tasks.sort_by_key(|task| match task {
        Task::Soak(_) => 0,
        Task::Documentation(_) => 1,
        Task::Program(program) | Task::Short(program) => match program.target.as_str() {
            COMPILE_FAIL => 2,
            "it" => 3,
            _ => 4,
        },
    });
    tasks
}

/// Whether some of the program's tests may be for `--long` alone. (Programs without the test harness take other arguments.)
fn has_long_tests(program: &Program) -> bool {
    program.kind == "lib" || program.target == "it"
}

impl Task {
    fn run(self) -> (String, Result<Ran>) {
        match &self {
            Self::Program(program) => (program.name(), program.run(&mut program.command(), TIME_LIMIT)),
            Self::Short(program) => {
                let mut command = program.command();
                SHORT.iter().for_each(|(name, value)| default_env(&mut command, name, value));
                if has_long_tests(program) {
                    skip_long(&mut command);
                }
                (program.name(), program.run(&mut command, TIME_LIMIT))
            }
            Self::Soak(program) => {
                let mut command = program.command();
                // All soaks at once: they mostly wait for each other otherwise.
                default_env(
                    command.args(["t19_", "t39_", "--test-threads=8"]),
                    "BUFTEST_SOAK_SECONDS",
                    SOAK_SECONDS,
                );
                let name = format!("{}, {SOAK_SECONDS} s of soak", program.name());
                (name, program.run_as("soak", &mut command, TIME_LIMIT))
            }
            Self::Documentation(arguments) => {
                let mut command = cargo();
                command.args(["test", "--doc"]).args(arguments);
                let ran =
                    test_binaries::run(&mut command, &target_folder().join("documentation.log"), TIME_LIMIT);
                let ran = ran.and_then(|ran| {
                    ensure!(!ran.passed() || ran.count() > 0, "no example ran");
                    Ok(ran)
                });
                ("examples in the documentation".to_owned(), ran)
            }
        }
    }
}

/// Prints a line for each test. A program without the test harness is one test.
fn list(tasks: &[Task]) -> Result<()> {
    for task in tasks {
        let (Task::Program(program) | Task::Short(program)) = task else { continue };
        if program.kind == "example" {
            println!("{} example {}", program.package, program.target);
            continue;
        }
        // Without the harness it would do its work: as little of it as it can.
        let mut command = program.command();
        let mut tests =
            program.tests(command.env("BUFTEST_COUNT", "1").env("BUFTEST_CASES", "1"), TIME_LIMIT)?;
        if matches!(task, Task::Short(_)) {
            tests.retain(|test| !LONG_ONLY.iter().any(|name| test.contains(name)));
        }
        let at = format!("{} {} {}", program.package, program.kind, program.target);
        match &tests[..] {
            [] => println!("{at}"),
            tests => tests.iter().for_each(|test| println!("{at} {test}")),
        }
    }
    Ok(())
}

/// Has the tests that `command` runs leave out those that are for `--long` alone. Comes behind the command's `--`, if it has one.
pub(crate) fn skip_long(command: &mut Command) {
    command.args(LONG_ONLY.iter().flat_map(|name| ["--skip", name]));
}

/// Sets a variable for `command`, if our caller has not.
pub(crate) fn default_env(command: &mut Command, name: &str, value: &str) {
    if env::var_os(name).is_none() {
        command.env(name, value);
    }
}

/// Fails unless the output of `cargo test` says that at least one test ran.
pub(crate) fn some_ran(output: &str) -> Result<()> {
    ensure!(test_binaries::passed(output) > 0, "no test ran");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_run_of_no_tests_is_a_failure() {
        let line =
            |count| format!("\ntest result: ok. {count} passed; 0 failed; 0 ignored; 9 filtered out\n");
        assert!(some_ran(&line(0)).is_err());
        assert!(some_ran("").is_err());
        assert!(some_ran(&(line(0) + &line(3))).is_ok());
    }

    #[test]
    fn heavy_features_are_left_out() {
        let package = |name: &str, features: &[&str], heavy: &[&str]| Package {
            name: name.into(),
            features: features
                .iter()
                .map(|name| ((*name).to_owned(), Vec::new()))
                .collect::<BTreeMap<_, _>>(),
            heavy: heavy.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
            ..Package::default()
        };
        let packages = [package("a", &["std", "peers"], &["peers"]), package("b", &["std"], &[])];
        assert_eq!(light_features(&packages), "a/std,b/std");
    }
}
