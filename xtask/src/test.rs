//! `cargo xtask test`: everything that a change has to pass on this machine, in minutes; with `--long`, the trials in full.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::packages::{self, Package};
use crate::programs::{self, Program, Ran};
use crate::queue;
use crate::shell::{self, cargo, command};

/// Not in the release build: no trials of pools, and most of what would have to be compiled. `ci bench-test` runs the matrix and the
/// proxy as they are released.
const DEBUG_ONLY: [&str; 9] = [
    "bufadvise",
    "bufbench",
    "bufcount",
    "bufidle",
    "bufreader",
    "bufruntimes",
    "buftrials",
    "bufworks-examples",
    "xtask",
];
/// Of these, the packages whose tests need crates of others: they are built with all of their features.
const WITH_OTHERS: [&str; 2] = ["bufbench", "bufruntimes"];
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
const LONG_ONLY: [&str; 7] = [
    "t19_",
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
/// Programs that the table names one by one.
const SLOWEST: usize = 8;

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

/// What was run, and how that ended.
#[derive(Debug)]
struct Done {
    name: String,
    kind: Kind,
    ran: Result<Ran>,
}

/// The rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tests,
    Documentation,
    Example,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        let tasks = if self.long { long()? } else { short()? };
        let built = started.elapsed();
        if self.list {
            return list(&tasks);
        }
        let all = tasks.len();
        let mut done: Vec<Done> = Vec::new();
        queue::run(
            tasks,
            |_| "",
            Task::run,
            |one| {
                println!("[{:>2}/{all}] {}", done.len() + 1, one.line());
                done.push(one);
            },
        );
        print!("\n{}", table(built, started.elapsed(), &done));
        let left_out = if self.long {
            "sanitizers, models, other systems, real servers: `cargo xtask ci`"
        } else {
            "the trials in full, soaks, and the crates that the matrix compares: `cargo xtask test --long`; \
             sanitizers, models, other systems, real servers: `cargo xtask ci`"
        };
        println!("left out: {left_out}");
        verdict(&done)
    }
}

/// Builds the tests of the workspace and its examples without optimisation, and without what brings crates of others along.
fn short() -> Result<Vec<Task>> {
    let packages = packages::all()?;
    let features = light_features(&packages);
    // Libraries and programs with unit tests are among `--tests`.
    let mut command = command!("cargo test --workspace --features {features} --tests --examples");
    let programs = programs::build(&mut command, &packages)?;
    let documentation = ["--workspace", "--features", &features].map(str::to_owned).to_vec();
    Ok(in_order(programs.into_iter().map(Task::Short).chain([Task::Documentation(documentation)])))
}

/// Builds the tests that need no optimisation with all features, and all trials as they are released.
fn long() -> Result<Vec<Task>> {
    let packages = packages::all()?;
    let chosen = WITH_OTHERS.iter().flat_map(|package| ["--package", package]);
    let mut debug = command!("cargo test {chosen...} --all-features --lib --tests");
    let debug = programs::build(&mut debug, &packages)?;
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
    let mut command = command!("cargo test --profile long --all-features --lib --tests");
    if only.is_empty() {
        command.arg("--workspace").args(DEBUG_ONLY.iter().flat_map(|package| ["--exclude", package]));
    }
    command.args(only.iter().flat_map(|package| ["--package", package]));
    programs::build(&mut command, &packages::all()?)
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
            _ if WITH_OTHERS.contains(&&*program.package) => 3,
            "it" => 4,
            _ => 5,
        },
    });
    tasks
}

/// Whether some of the program's tests may be for `--long` alone. (Programs without the test harness take other arguments.)
fn has_long_tests(program: &Program) -> bool {
    program.kind == "lib" || program.target == "it"
}

impl Task {
    fn run(self) -> Done {
        let (name, kind, ran) = match &self {
            Self::Program(program) | Self::Short(program) => {
                let kind = if program.kind == "example" { Kind::Example } else { Kind::Tests };
                let mut command = program.command();
                if matches!(self, Self::Short(_)) {
                    SHORT.iter().for_each(|(name, value)| default_env(&mut command, name, value));
                    if has_long_tests(program) {
                        skip_long(&mut command);
                    }
                }
                (program.name(), kind, program.run(&mut command, TIME_LIMIT))
            }
            Self::Soak(program) => {
                let mut command = program.command();
                // All soaks at once: they mostly wait for each other otherwise.
                default_env(command.args(["t19_", "--test-threads=8"]), "BUFTEST_SOAK_SECONDS", SOAK_SECONDS);
                let ran = program.run_as("soak", &mut command, TIME_LIMIT);
                (format!("{}, {SOAK_SECONDS} s of soak", program.name()), Kind::Tests, ran)
            }
            Self::Documentation(arguments) => {
                let mut command = cargo();
                command.args(["test", "--doc"]).args(arguments);
                let log = shell::target_folder().join("documentation.log");
                (
                    "examples in the documentation".into(),
                    Kind::Documentation,
                    programs::run(&mut command, &log, TIME_LIMIT),
                )
            }
        };
        // A program with a test harness that ran no test shows nothing.
        let ran = ran.and_then(|ran| {
            ensure!(!(kind == Kind::Documentation && ran.passed() && ran.count() == 0), "no example ran");
            Ok(ran)
        });
        Done { name, kind, ran }
    }
}

impl Done {
    /// One line: how it ended, what it was, how many tests passed, how long it took.
    fn line(&self) -> String {
        match &self.ran {
            Ok(ran) => {
                let how = if ran.passed() { "ok    " } else { "FAILED" };
                let count =
                    if ran.count() > 0 { format!("{:>4} passed", ran.count()) } else { String::new() };
                format!("{how} {:<44} {count:>11} {:>7.1} s", self.name, ran.took.as_secs_f64())
            }
            Err(error) => format!("FAILED {}: {error:#}", self.name),
        }
    }
}

/// Where the time went: building, each kind of what ran, and the slowest of it.
fn table(built: Duration, total: Duration, done: &[Done]) -> String {
    let mut text = format!("{:<52}  seconds\n", "where the time went");
    let mut row = |name: &str, took: Duration| text += &format!("{name:<52}  {:7.1}\n", took.as_secs_f64());
    row("building", built);
    row("running, some beside each other", total.saturating_sub(built));
    for (kind, name) in [
        (Kind::Tests, "tests"),
        (Kind::Documentation, "examples in the documentation"),
        (Kind::Example, "example programs"),
    ] {
        let of_kind: Vec<_> =
            done.iter().filter(|one| one.kind == kind).filter_map(|one| one.ran.as_ref().ok()).collect();
        let count = match kind {
            Kind::Example => of_kind.len() as u64,
            _ => of_kind.iter().map(|ran| ran.count()).sum(),
        };
        row(&format!("  {count} {name}"), of_kind.iter().map(|ran| ran.took).sum());
    }
    let mut slowest: Vec<_> =
        done.iter().filter_map(|one| Some((one.ran.as_ref().ok()?.took, &one.name))).collect();
    slowest.sort_unstable_by(|a, b| b.cmp(a));
    for (took, name) in slowest.iter().take(SLOWEST) {
        row(&format!("    {name}"), *took);
    }
    row("all", total);
    text
}

/// Fails when something did, with what it printed.
fn verdict(done: &[Done]) -> Result<()> {
    let mut failed = Vec::new();
    for one in done {
        match &one.ran {
            Ok(ran) if ran.passed() => {}
            Ok(ran) => failed.push(format!("{} ({}):\n{}", one.name, ran.how(), shell::failures(&ran.log))),
            Err(error) => failed.push(format!("{}: {error:#}", one.name)),
        }
    }
    if !failed.is_empty() {
        bail!("{} of {} failed:\n\n{}", failed.len(), done.len(), failed.join("\n\n"));
    }
    println!("test: all passed");
    Ok(())
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
    ensure!(programs::passed(output) > 0, "no test ran");
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

    #[test]
    fn what_failed_is_told() {
        assert!(verdict(&[]).is_ok());
        let failed = Done { name: "some".into(), kind: Kind::Tests, ran: Err(anyhow::anyhow!("no program")) };
        let error = verdict(&[failed]).unwrap_err().to_string();
        assert_eq!(error, "1 of 1 failed:\n\nsome: no program");
    }
}
