//! Builds the copy that has all mutants, and runs the models and `races` of a package with one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{self, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::sources::{self, CHOSEN, REACHED};
use super::{COMMON, Orderings};
use crate::copied::Copied;
use crate::models::LOOM;
use crate::packages::{self, Package};
use crate::programs::{self, Program, Ran};
use crate::queue;
use crate::sanitize::thread_options;
use crate::shell;
use crate::test::default_env;

const FOLDER: &str = "target/orderings";
/// No model and no program takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Preemptions of models at first: one less than in the job `loom`, which finds all that these find.
const FEW: &str = "2";
/// A model that takes no longer is tried before anything else.
const QUICK: Duration = Duration::from_secs(20);
/// Of a model that takes longer no more is waited for when it is first run: what it comes to, it has come to by then.
const SLOW: Duration = Duration::from_secs(60);

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A model fails.
    Models(String),
    /// `races` of a package fails under ThreadSanitizer.
    Races(String),
    /// Nothing fails; whether anything comes there at all.
    Survived { is_reached: bool },
}

impl Outcome {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Models(_) => "models",
            Self::Races(_) => "races",
            Self::Survived { .. } => "survived",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Models(name) => write!(f, "caught by {name}"),
            Self::Races(name) => write!(f, "caught by {name}, under ThreadSanitizer"),
            Self::Survived { is_reached: true } => f.write_str("SURVIVED, though it is reached"),
            Self::Survived { is_reached: false } => f.write_str("SURVIVED, and nothing reaches it"),
        }
    }
}

/// What may find mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Models,
    Races,
}

/// Whose models or `races` are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Those of the mutant's own package.
    Own,
    /// For mutants of the package that all others are built on: those of the others.
    Others,
}

/// A model, or a `races` program.
struct Trial {
    program: Program,
    /// None for a whole program.
    test: Option<String>,
    /// Without a mutant.
    took: Duration,
    reached: BTreeSet<usize>,
    /// How many mutants it has found: one that finds many is tried first.
    found: AtomicUsize,
}

/// The programs that mutants are tried with.
pub(super) struct Trials<'a> {
    orderings: &'a Orderings,
    root: PathBuf,
    /// Of the copy.
    packages: Vec<Package>,
}

impl<'a> Trials<'a> {
    /// Makes the copy.
    pub(super) fn new(orderings: &'a Orderings, packages: &[Package]) -> Result<Self> {
        ensure!(!packages.is_empty(), "no packages");
        let mut copied = Copied::at(Path::new(FOLDER).join("tree"))?;
        copied.put(sources::with_mutants(orderings))?;
        let root = copied.root().to_owned();
        let mut packages = packages::all_of(&root)?;
        packages.retain(|package| package.published);
        Ok(Self { orderings, root, packages })
    }

    /// Tries each of `mutants`, and tells `done` of each: first the models that take seconds, then
    /// `races`, and for what is left all models with as many preemptions as in the job `loom`.
    ///
    /// A program that no mutant is left for is not built.
    pub(super) fn run(&self, mutants: &[usize], mut done: impl FnMut(usize, &Outcome, f64)) -> Result<()> {
        let mut left: BTreeMap<usize, f64> = mutants.iter().map(|&at| (at, 0.0)).collect();
        let (mut models, mut slow, mut races) = (Vec::new(), Vec::new(), Vec::new());
        let mut built = BTreeSet::new();
        for whose in [Whose::Own, Whose::Others] {
            let all = self.trials(Kind::Models, whose, &left, &mut built)?;
            let (quick, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|model| model.took < QUICK);
            self.run_with(&quick, FEW, &mut left, Outcome::Models, &mut done)?;
            models.extend(quick);
            slow.extend(others);
        }
        built.clear();
        for whose in [Whose::Own, Whose::Others] {
            let all = self.trials(Kind::Races, whose, &left, &mut built)?;
            self.run_with(&all, FEW, &mut left, Outcome::Races, &mut done)?;
            races.extend(all);
        }
        models.append(&mut slow);
        self.run_with(&models, LOOM.unless_set, &mut left, Outcome::Models, &mut done)?;
        for (at, took) in left {
            let is_reached = models.iter().chain(&races).any(|trial| trial.reached.contains(&at));
            done(at, &Outcome::Survived { is_reached }, took);
        }
        Ok(())
    }

    /// Runs those of `trials` that come to a mutant, for each that is `left`, up to the first that fails; that mutant is not left then.
    fn run_with(
        &self,
        trials: &[Trial],
        preemptions: &str,
        left: &mut BTreeMap<usize, f64>,
        outcome: impl Fn(String) -> Outcome,
        mut done: impl FnMut(usize, &Outcome, f64),
    ) -> Result<()> {
        let work = |at: usize| {
            let started = Instant::now();
            let mut of_mutant: Vec<_> = trials.iter().filter(|trial| trial.reached.contains(&at)).collect();
            // ORDER: Relaxed: a hint.
            of_mutant.sort_by_key(|trial| (usize::MAX - trial.found.load(Ordering::Relaxed), trial.took));
            let mut found = None;
            for trial in of_mutant {
                let ran = trial.run(Some(at), preemptions)?;
                // One that does not end has found nothing.
                if ran.status.is_some() && !ran.passed() {
                    // ORDER: Relaxed, likewise.
                    trial.found.fetch_add(1, Ordering::Relaxed);
                    found = Some(trial.name());
                    break;
                }
            }
            anyhow::Ok((at, found, started.elapsed().as_secs_f64()))
        };
        let mut result = Ok(());
        queue::run(
            left.keys().copied().collect(),
            |_| "",
            work,
            |ended| match ended {
                Ok((at, Some(name), took)) => {
                    let before = left.remove(&at).unwrap_or_default();
                    done(at, &outcome(name), before + took);
                }
                Ok((at, None, took)) => *left.entry(at).or_default() += took,
                Err(error) => result = Err(error),
            },
        );
        result
    }

    /// What may find the mutants that are `left`, of packages that are not among those `built`
    /// before. Each is run once without a mutant: it has to pass, and says which it comes to.
    fn trials(
        &self,
        kind: Kind,
        whose: Whose,
        left: &BTreeMap<usize, f64>,
        built: &mut BTreeSet<String>,
    ) -> Result<Vec<Trial>> {
        let tasks = self.programs(kind, whose, left, built)?;
        let (mut trials, mut outcome) = (Vec::new(), Ok(()));
        let work = |(program, test): (Program, Option<String>)| {
            let found = AtomicUsize::new(0);
            let mut trial = Trial { program, test, took: Duration::ZERO, reached: BTreeSet::new(), found };
            let ran = trial.run(None, FEW)?;
            // One that takes longer is among the last, and shows in the job `loom` that it passes.
            let is_slow = ran.status.is_none() && kind == Kind::Models;
            ensure!(
                ran.passed() || is_slow,
                "{} has to pass without a mutant ({}):\n{}",
                trial.name(),
                ran.how(),
                ran.log
            );
            trial.took = ran.took;
            let numbers = ran.log.lines().filter_map(|line| line.split_once(REACHED)?.1.parse().ok());
            trial.reached = numbers.collect();
            anyhow::Ok(trial)
        };
        queue::run(
            tasks,
            |_| "",
            work,
            |trial| match trial {
                Ok(trial) => {
                    println!("{}: {:.1} s without a mutant", trial.name(), trial.took.as_secs_f64());
                    trials.push(trial);
                }
                Err(error) => outcome = Err(error),
            },
        );
        outcome.map(|()| trials)
    }

    /// Builds the programs of [`trials`](Self::trials), and returns each with each of its models.
    fn programs(
        &self,
        kind: Kind,
        whose: Whose,
        left: &BTreeMap<usize, f64>,
        built: &mut BTreeSet<String>,
    ) -> Result<Vec<(Program, Option<String>)>> {
        let of: BTreeSet<&str> = left.keys().map(|&at| &*self.orderings.mutants[at].package).collect();
        let is_wanted = |package: &&Package| match (whose, kind) {
            (Whose::Own, _) if !of.contains(&*package.name) => false,
            (Whose::Others, _) if !COMMON.iter().any(|common| of.contains(common)) => false,
            (_, Kind::Models) => LOOM.has_models(package),
            (_, Kind::Races) => package.test("races").is_some(),
        };
        let mut tasks = Vec::new();
        let started = Instant::now();
        for package in self.packages.iter().filter(is_wanted) {
            if !built.insert(package.name.clone()) {
                continue;
            }
            let program = self.build(kind, package)?;
            match kind {
                Kind::Models => {
                    let mut tests = program.tests(&mut program.command(), TIME_LIMIT)?;
                    tests.retain(|test| test.contains(LOOM.name));
                    tasks.extend(tests.into_iter().map(|test| (program.clone(), Some(test))));
                }
                Kind::Races => tasks.push((program, None)),
            }
        }
        if !tasks.is_empty() {
            println!("{kind:?}: built in {:.1} s", started.elapsed().as_secs_f64());
        }
        Ok(tasks)
    }

    fn build(&self, kind: Kind, package: &Package) -> Result<Program> {
        let mut command = match kind {
            Kind::Models => shell::cargo(),
            Kind::Races => shell::cargo_of("nightly").context("no nightly toolchain installed")?,
        };
        command.current_dir(&self.root).args(["test", "--quiet", "--package", &package.name]);
        let (folder, flags) = match kind {
            // In the folder of `cargo xtask loom`, which builds the same dependencies.
            Kind::Models => {
                command.args(["--release", "--lib"]);
                (path::absolute(LOOM.target_dir)?, "--cfg loom")
            }
            // With the default features: trackers and counters order threads.
            Kind::Races => {
                command.args(["--test", "races", "--target", &shell::host_triple()?]);
                let needed = package.test("races").into_iter().flat_map(|program| &program.required_features);
                needed.for_each(|feature| {
                    command.args(["--features", feature]);
                });
                let flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
                (path::absolute(FOLDER)?.join("thread"), flags)
            }
        };
        command.arg("--target-dir").arg(folder).env("RUSTFLAGS", flags);
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "1");
        command.env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "256");
        let programs = programs::build(&mut command, &self.packages)?;
        let program = programs.into_iter().find(|program| program.package == package.name);
        program.with_context(|| format!("cargo names no test program of {}", package.name))
    }
}

impl Trial {
    fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("`{}` {test}", self.program.package),
            None => format!("`{}` {}", self.program.package, self.program.target),
        }
    }

    fn run(&self, mutant: Option<usize>, preemptions: &str) -> Result<Ran> {
        let mut command = self.program.command();
        if let Some(test) = &self.test {
            command.args(["--exact", test]);
        }
        if let Some(mutant) = mutant {
            command.env(CHOSEN, mutant.to_string());
        }
        default_env(&mut command, LOOM.variable, preemptions);
        default_env(&mut command, "BUFTEST_COUNT", "5000");
        command.env("TSAN_OPTIONS", thread_options()?).env("RUST_BACKTRACE", "0");
        let test = self.test.as_deref().unwrap_or("all").replace("::", "-");
        let name = format!("{test}.{}", mutant.map_or("none".to_owned(), |mutant| mutant.to_string()));
        let limit = if mutant.is_none() && self.test.is_some() { SLOW } else { TIME_LIMIT };
        self.program.run_as(&name, &mut command, limit)
    }
}
