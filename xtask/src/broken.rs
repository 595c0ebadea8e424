//! `cargo xtask broken`: each trial once against a build with a known defect, which has to make it fail (T20).
//!
//! A trial that passes there proves nothing anywhere, so this command fails then. It fails as well when a trial does not pass on
//! the sound build, which is tried first: only so is a failure the defect's. The defects are patches (`mutants`), which are applied to
//! a copy of the sources, one at a time. Each must apply, and the build must succeed, so that a defect that rotted is not taken for
//! one that was found.
//!
//! Most defects are in one build, and an environment variable chooses one (`combined`). The others are built by themselves, on top of
//! that; what such a defect does not touch is not built again. Each package's tests are built by a command of their own, with the
//! features that they have alone: with others beside them `bufcore` would have more. Tests run while the next programs are built.

mod combined;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::combined::{CHOSEN, Combined};
use crate::copied::Copied;
use crate::models::{Checker, LOOM, SHUTTLE};
use crate::mutants::{self, Case, Mutant, Tool};
use crate::orderings;
use crate::packages::{self, Package};
use crate::programs::{self, Program, Ran};
use crate::queue;
use crate::sanitize::thread_options;
use crate::shell;
use crate::test::default_env;

const FOLDER: &str = "target/broken";
/// No trial takes nearly as long: on the sound build, all trials of a program together end within it.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// This number of tests runs at once for each processor: with a defect many of them sleep until they give up.
const AT_ONCE: usize = 2;
/// This number of builds is made before the tests of the first of them are over.
const BUILT_AHEAD: usize = 3;

/// Options of `broken`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this defect: `nolock` in each package that has it, `bufslot/nolock` in one.
    #[arg(long)]
    defect: Option<String>,
    /// Print the table as Markdown, and run nothing.
    #[arg(long)]
    list: bool,
    /// Leave out the trials that need the nightly toolchain.
    #[arg(long)]
    stable: bool,
    /// Run the models of loom alone, which the command leaves out otherwise.
    #[arg(long, conflicts_with = "stable")]
    loom: bool,
    /// Weaken each memory order once instead, and run the models.
    #[arg(long, conflicts_with_all = ["stable", "loom", "defect"])]
    orderings: bool,
    /// Weaken only the orders of this package.
    #[arg(long = "crate", value_name = "PACKAGE", requires = "orderings")]
    package: Option<String>,
    /// Weaken only the orders with this text in their names. May be given more than once.
    #[arg(long, value_name = "TEXT", requires = "orderings")]
    site: Vec<String>,
}

/// A test program: package, test target, and what it runs under.
type Wanted<'a> = (&'a str, &'a str, Tool);

/// The programs of one build.
type Built<'a> = BTreeMap<Wanted<'a>, Program>;

impl Case {
    fn wanted(&self) -> Wanted<'_> {
        (&self.package, &self.target, self.tool)
    }

    /// The tests, or nothing for the whole target.
    fn each(&self) -> impl Iterator<Item = Option<&str>> {
        self.tests.iter().map(|test| Some(&**test)).chain(self.tests.is_empty().then_some(None))
    }
}

/// A defect, and the cases of it that were chosen.
#[derive(Debug, Clone)]
struct Chosen<'a> {
    mutant: &'a Mutant,
    cases: Vec<&'a Case>,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if self.orderings {
            return orderings::run(self.package.as_deref(), &self.site, self.list);
        }
        let mutants = mutants::all()?;
        if self.list {
            list(&mutants);
            return Ok(());
        }
        let chosen = self.chosen(&mutants);
        let count: usize = chosen.iter().map(|chosen| chosen.cases.len()).sum();
        if count == 0 {
            bail!("no known defect fits these options: `cargo xtask broken --list` prints all names");
        }
        let started = Instant::now();
        let mut workshop = Workshop::new(Path::new(FOLDER), &chosen)?;
        let mut passed = Vec::new();
        let (sender, builds) = mpsc::sync_channel(BUILT_AHEAD);
        thread::scope(|scope| {
            let chosen = &chosen;
            let has = workshop.has(chosen.len());
            scope.spawn(move || {
                let together = by_package(chosen).into_iter().map(|cases| (None, cases));
                let alone = (0..chosen.len()).filter(|&number| !workshop.combined.has(number));
                let alone: Vec<_> =
                    alone.map(|number| (Some(number), chosen[number].cases.clone())).collect();
                for (number, cases) in together.chain(alone) {
                    let started = Instant::now();
                    let built = workshop.build(&cases, number.map(|number| chosen[number].mutant));
                    // Nobody receives any more after an error.
                    if sender.send((number, cases, built, started.elapsed())).is_err() {
                        break;
                    }
                }
            });
            for (number, cases, built, took) in builds {
                let built = built?;
                let name = number.map_or("together", |number| &chosen[number].mutant.name);
                println!("{name}: built in {:.1} s", took.as_secs_f64());
                let tasks = if let Some(number) = number {
                    tasks(&chosen[number], None, &cases)
                } else {
                    // Models have shown this in the job `loom`.
                    if !self.loom {
                        sound(&cases, &built)?;
                    }
                    let within = chosen.iter().enumerate().filter(|(number, _)| has[*number]);
                    within.flat_map(|(number, one)| tasks(one, Some(number), &cases)).collect()
                };
                try_out(tasks, &built, &mut passed)?;
                // A hundred of them would be gigabytes.
                for program in built.values() {
                    fs::remove_file(&program.executable)?;
                }
            }
            anyhow::Ok(())
        })?;
        if !passed.is_empty() {
            bail!(
                "{} tests passed with the defect that they must find:\n{}",
                passed.len(),
                passed.join("\n")
            );
        }
        println!(
            "{count} trials failed with their defects, as they must, in {} s",
            started.elapsed().as_secs()
        );
        Ok(())
    }

    /// The cases that are to run, by defects: package by package, so that little is built again. `bufcore`, of which everything is built,
    /// comes last.
    fn chosen<'a>(&self, mutants: &'a [Mutant]) -> Vec<Chosen<'a>> {
        let is_chosen = |case: &&Case| match case.tool {
            Tool::Loom => self.loom,
            Tool::ThreadSanitizer => !self.loom && !self.stable,
            Tool::Plain | Tool::DefaultFeatures | Tool::Shuttle => !self.loom,
        };
        let is_named = |mutant: &&Mutant| {
            self.defect.as_deref().is_none_or(|name| name == mutant.name || name == mutant.defect())
        };
        let mut chosen: Vec<_> = mutants
            .iter()
            .filter(is_named)
            .map(|mutant| Chosen { mutant, cases: mutant.cases.iter().filter(is_chosen).collect() })
            .filter(|chosen| !chosen.cases.is_empty())
            .collect();
        chosen.sort_by_key(|chosen| (chosen.mutant.package() == "bufcore", &chosen.mutant.name));
        chosen
    }
}

/// Prints the table, in the order of the trials.
fn list(mutants: &[Mutant]) {
    let mut rows: Vec<_> =
        mutants.iter().flat_map(|mutant| mutant.cases.iter().map(move |case| (mutant, case))).collect();
    rows.sort_by_key(|(_, case)| {
        let number = case.trial.strip_prefix('T').and_then(|number| number.parse().ok());
        (number.unwrap_or(u32::MAX), &case.trial)
    });
    println!("| trial | defect | what it does | tests that fail |\n| --- | --- | --- | --- |");
    for (mutant, case) in rows {
        println!("| {} | `{}` | {} | {} |", case.trial, mutant.name, mutant.what, names(case));
    }
}

/// All cases, by the packages whose tests they are.
fn by_package<'a>(chosen: &[Chosen<'a>]) -> Vec<Vec<&'a Case>> {
    let mut packages: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in chosen.iter().flat_map(|chosen| chosen.cases.iter().copied()) {
        packages.entry(&case.package).or_default().push(case);
    }
    packages.into_values().collect()
}

/// A test that has to fail, and the defect that is there then.
struct Task<'a> {
    mutant: &'a Mutant,
    /// The defect's number, if the program has several to choose from.
    number: Option<usize>,
    case: &'a Case,
    /// None for the whole of a target.
    test: Option<&'a str>,
}

/// The tests of a defect, of those of its cases that are among `cases`.
fn tasks<'a>(chosen: &Chosen<'a>, number: Option<usize>, cases: &[&'a Case]) -> Vec<Task<'a>> {
    let mutant = chosen.mutant;
    let built = chosen.cases.iter().filter(|case| cases.iter().any(|other| ptr::eq(*other, **case)));
    built.flat_map(|&case| case.each().map(move |test| Task { mutant, number, case, test })).collect()
}

/// Runs tests with their defects, and adds those to `passed` that do not see it.
fn try_out(tasks: Vec<Task<'_>>, built: &Built<'_>, passed: &mut Vec<String>) -> Result<()> {
    let mut outcome = Ok(());
    let work = |Task { mutant, number, case, test }: Task<'_>| {
        let row = format!("{} {} {} {}", case.trial, mutant.name, case.package, test.unwrap_or(&case.target));
        (row, run(&built[&case.wanted()], test.as_slice(), case.tool, number))
    };
    queue::run_at_once(
        tasks,
        AT_ONCE * queue::processors(),
        |_| "",
        work,
        |(row, ran)| match ran {
            Ok(ran) if ran.passed() => {
                println!("{row}: PASSED, but it must fail");
                passed.push(row);
            }
            Ok(ran) => {
                println!("{row}: failed, as it must ({}, {:.1} s)", how(&ran), ran.took.as_secs_f64());
            }
            Err(error) => outcome = Err(error.context(row)),
        },
    );
    outcome
}

/// Runs the tests of all `cases` without a defect, where they have to pass.
fn sound(cases: &[&Case], built: &Built<'_>) -> Result<()> {
    for (wanted, program) in built {
        let of_program = || cases.iter().filter(|case| case.wanted() == *wanted);
        let tests: BTreeSet<&str> = of_program().flat_map(|case| &case.tests).map(|test| &**test).collect();
        let tests: Vec<&str> = tests.into_iter().collect();
        let has_harness = of_program().any(|case| case.has_harness());
        // A harness takes many names, and runs them side by side; other programs take one.
        let runs = if has_harness || tests.is_empty() { vec![&tests[..]] } else { tests.chunks(1).collect() };
        for names in runs {
            let ran = run(program, names, wanted.2, None)?;
            let ran_all = !has_harness || ran.count() == names.len() as u64;
            ensure!(
                ran.passed() && ran_all,
                "these tests must pass without a defect: {} {names:?} ({}):\n{}",
                program.name(),
                how(&ran),
                ran.log
            );
        }
        println!("{}: {} tests pass without a defect", program.name(), tests.len().max(1));
    }
    Ok(())
}

/// Runs some tests of a program by their names, with the defect that was chosen, if one was.
fn run(program: &Program, tests: &[&str], tool: Tool, defect: Option<usize>) -> Result<Ran> {
    let mut command = program.command();
    command.envs(defect.map(|number| (CHOSEN, number.to_string())));
    command.args(tests.first().map(|_| "--exact")).args(tests);
    default_env(&mut command, "BUFTEST_COUNT", "20000");
    command.env("TSAN_OPTIONS", thread_options()?);
    // Of models: a schedule that shows the defect is among the first.
    if let Tool::Shuttle | Tool::Loom = tool {
        let checker = checker(tool);
        default_env(&mut command, checker.variable, checker.unless_set);
    }
    command.env("RUST_BACKTRACE", "0");
    // Nobody reads the shortest program that fails, and some defects let one of the search go on for ever.
    default_env(&mut command, "PROPTEST_MAX_SHRINK_ITERS", "0");
    let name = tests.join("+").replace("::", "-");
    let defect = defect.map(|number| number.to_string()).unwrap_or_default();
    program.run_as(&[&defect, &name[..name.len().min(100)]].concat(), &mut command, TIME_LIMIT)
}

/// How a program ended. Signals and time-outs of the processes that trials start for themselves are in the log.
fn how(ran: &Ran) -> String {
    let Some(status) = ran.status else {
        return format!("no end within {TIME_LIMIT:?}");
    };
    let started_alone = ran.log.split_once("failed in its own process (");
    let ended = started_alone.and_then(|(_, rest)| Some(rest.split_once("):")?.0));
    match ended.filter(|ended| ended.starts_with("signal")) {
        Some(signal) => signal.to_owned(),
        None if ran.log.contains("did not end within") => "no end within the trial's limit".to_owned(),
        None if ran.log.contains("ThreadSanitizer: data race") => "data race reported".to_owned(),
        None => status.to_string(),
    }
}

fn names(case: &Case) -> String {
    let tool = match case.tool {
        Tool::Plain => "",
        Tool::DefaultFeatures => ", with the default features",
        Tool::ThreadSanitizer => ", under ThreadSanitizer",
        Tool::Shuttle => ", under shuttle",
        Tool::Loom => ", under loom",
    };
    let target = if case.has_harness() { String::new() } else { format!(" `{}`", case.target) };
    let tests: Vec<_> = case.tests.iter().map(|name| format!("`{name}`")).collect();
    let tests = if tests.is_empty() { tests.concat() } else { format!(" {}", tests.join(", ")) };
    format!("`{}`{target}{tests}{tool}", case.package)
}

/// Where defects are built: a copy of the sources, and the packages in it.
struct Workshop {
    copied: Copied,
    combined: Combined,
    packages: Vec<Package>,
    /// The folder of what is built, and of the programs that are kept for as long as they run.
    folder: PathBuf,
}

impl Workshop {
    /// For the defects that were chosen, which have their places among them as numbers.
    fn new(folder: &Path, chosen: &[Chosen<'_>]) -> Result<Self> {
        let copied = Copied::at(folder.join("tree"))?;
        let combined = Combined::of(&chosen.iter().map(|one| one.mutant).collect::<Vec<_>>(), read)?;
        let folder = fs::canonicalize(folder)?;
        let kept = folder.join("programs");
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        let packages = packages::all_of(copied.root())?;
        let count = (0..chosen.len()).filter(|&number| combined.has(number)).count();
        println!("{count} of {} defects are in one build", chosen.len());
        Ok(Self { copied, combined, packages, folder })
    }

    /// For each defect whether it is in the one build.
    fn has(&self, count: usize) -> Vec<bool> {
        (0..count).map(|number| self.combined.has(number)).collect()
    }

    /// Builds the test programs of `cases`, with a defect that is built by itself or with all others.
    fn build<'a>(&mut self, cases: &[&'a Case], alone: Option<&Mutant>) -> Result<Built<'a>> {
        let files = alone.map_or(Ok(self.combined.files()), |mutant| self.combined.with(mutant, read))?;
        self.copied.put(files)?;
        let name = alone.map_or("together", |mutant| &mutant.name);
        self.build_all(cases, name).with_context(|| format!("the build of {name}"))
    }

    fn build_all<'a>(&self, cases: &[&'a Case], name: &str) -> Result<Built<'a>> {
        let kept = self.folder.join("programs").join(name);
        let wanted: BTreeSet<Wanted<'_>> = cases.iter().map(|case| case.wanted()).collect();
        let commands: BTreeSet<_> = wanted.iter().map(|(package, _, tool)| (*package, *tool)).collect();
        let mut built = BTreeMap::new();
        for (package, tool) in commands {
            let of_command: Vec<_> =
                wanted.iter().copied().filter(|wanted| (wanted.0, wanted.2) == (package, tool)).collect();
            let targets = of_command.iter().map(|wanted| wanted.1).collect::<Vec<_>>();
            let programs = programs::build(&mut self.command(package, &targets, tool)?, &self.packages)?;
            for wanted in of_command {
                let (package, target, tool) = wanted;
                let is_it = |program: &&Program| {
                    program.package == package
                        && (program.target == target || target == "lib" && program.kind == "lib")
                };
                let found = programs.iter().find(is_it);
                let found =
                    found.with_context(|| format!("cargo names no test program `{target}` of {package}"))?;
                // The next build puts another program in its place.
                let mut program = found.clone();
                let file = kept.join(format!("{tool:?}-{package}-{target}").to_lowercase());
                fs::create_dir_all(&kept)?;
                fs::copy(&found.executable, &file)
                    .with_context(|| format!("cannot copy to {}", file.display()))?;
                // A library that the tests load is looked for beside them.
                let library = format!("lib{package}.so");
                let built_library = found.executable.with_file_name(&library);
                if built_library.exists() {
                    fs::copy(built_library, kept.join(library))?;
                }
                program.executable = file;
                built.insert(wanted, program);
            }
        }
        Ok(built)
    }

    /// The command that builds some test targets of a package.
    fn command(&self, package: &str, targets: &[&str], tool: Tool) -> Result<Command> {
        let mut command = match tool {
            Tool::Plain | Tool::DefaultFeatures | Tool::Shuttle | Tool::Loom => shell::cargo(),
            Tool::ThreadSanitizer => shell::cargo_of("nightly").context("no nightly toolchain installed")?,
        };
        command.current_dir(self.copied.root());
        command.args(["test", "--quiet", "--package", package]);
        for target in targets {
            match *target {
                "lib" => command.arg("--lib"),
                target => command.args(["--test", target]),
            };
        }
        let (folder, flags) = match tool {
            // Code that a defect leaves unused is no news.
            Tool::Plain => {
                command.arg("--all-features");
                (self.folder.join("plain"), "-Awarnings".to_owned())
            }
            Tool::DefaultFeatures => (self.folder.join("plain"), "-Awarnings".to_owned()),
            // Not with `track`, whose lock orders threads, and is reported itself (see `tsan-suppressions.txt`).
            Tool::ThreadSanitizer => {
                command.args(["--target", &shell::host_triple()?]);
                let flags = "-Awarnings -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
                (self.folder.join("thread"), flags.to_owned())
            }
            // In the folder of `cargo xtask loom` or `shuttle`, which builds the same dependencies.
            Tool::Shuttle | Tool::Loom => {
                let checker = checker(tool);
                command.arg("--release");
                (path::absolute(checker.target_dir)?, format!("--cfg {}", checker.name))
            }
        };
        command.arg("--target-dir").arg(folder).env("RUSTFLAGS", flags);
        // Smaller and sooner there: nobody debugs these.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        Ok(command)
    }
}

/// A file of the sources as they are.
fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The checker of a model.
fn checker(tool: Tool) -> &'static Checker {
    if tool == Tool::Loom { &LOOM } else { &SHUTTLE }
}
