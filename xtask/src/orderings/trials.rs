//! Builds the copy that has all mutants, and runs the models and `races` of a package with one after the other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Orderings, sources};
use crate::job_queue;
use crate::models::LOOM;
use crate::mutant_build::{Choice, MutantBuild, Tool, reached, run};
use crate::packages::Package;
use crate::test_binaries::{Program, Ran};

const FOLDER: &str = "target/orderings";
/// No model and no program takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Preemptions of models at first, as in the job `loom`; and for what no trial has found.
const FEW: &str = LOOM.unless_set;
const MANY: &str = "3";
/// A model that takes no longer is tried before anything else.
const QUICK: Duration = Duration::from_secs(20);
/// Of a model that takes longer no more is waited for when it is first run: what it comes to, it has come to by then.
const SLOW: Duration = Duration::from_secs(60);

/// A model, or a `races` program.
struct Trial {
    program: Program,
    tool: Tool,
    /// None for a whole program.
    test: Option<String>,
    /// Without a mutant.
    took: Duration,
    reached: BTreeSet<usize>,
    /// How many mutants it has found: one that finds many is tried first.
    found: AtomicUsize,
}

/// What became of a mutant.
pub(super) struct Outcome {
    pub(super) at: usize,
    /// What caught it: `models` or `races`, and which.
    pub(super) caught: Option<(&'static str, String)>,
    /// Whether anything comes there at all.
    pub(super) is_reached: bool,
}

/// The programs that mutants are tried with.
pub(super) struct Trials<'a> {
    orderings: &'a Orderings,
    build: MutantBuild,
    /// What is built: packages, with the tool.
    built: BTreeSet<(String, Tool)>,
}

impl<'a> Trials<'a> {
    /// Makes the copy.
    pub(super) fn new(orderings: &'a Orderings) -> Result<Self> {
        let mut build = MutantBuild::new(FOLDER)?;
        build.put(sources::with_mutants(orderings), orderings.count())?;
        Ok(Self { orderings, build, built: BTreeSet::new() })
    }

    /// Tries each of `mutants`, and tells `done` of each: first the models that take seconds, then
    /// `races`, and for what is left all models with more preemptions.
    ///
    /// Of each kind those of the mutant's own package come first. A program that no mutant is left for is not built.
    pub(super) fn run(&mut self, mutants: &[usize], mut done: impl FnMut(Outcome)) -> Result<()> {
        let mut left: BTreeSet<usize> = mutants.iter().copied().collect();
        let (mut models, mut races) = (Vec::new(), Vec::new());
        for (tool, all) in [(Tool::Loom, &mut models), (Tool::ThreadSanitizer, &mut races)] {
            for own in [true, false] {
                let trials = self.trials(tool, own, &left)?;
                let is_quick = |trial: &&Trial| tool != Tool::Loom || trial.took < QUICK;
                try_each(trials.iter().filter(is_quick).collect(), FEW, &mut left, &mut done)?;
                all.extend(trials);
            }
        }
        try_each(models.iter().collect(), MANY, &mut left, &mut done)?;
        for at in left {
            let is_reached = models.iter().chain(&races).any(|trial| trial.reached.contains(&at));
            done(Outcome { at, caught: None, is_reached });
        }
        Ok(())
    }

    /// What may find the mutants that are `left`: of their `own` packages, or of those that depend on them. Each is run once without a
    /// mutant: it has to pass, and says which it comes to.
    fn trials(&mut self, tool: Tool, own: bool, left: &BTreeSet<usize>) -> Result<Vec<Trial>> {
        let with_mutants: BTreeSet<&str> =
            left.iter().map(|&at| &*self.orderings.mutants[at].package).collect();
        let is_wanted = |package: &&Package| {
            let mut ours = package.dependencies.iter().filter(|one| !one.is_dev);
            let is_own = with_mutants.contains(&*package.name);
            let has_trials = match tool {
                Tool::Loom => LOOM.has_models(package),
                _ => package.test("races").is_some(),
            };
            let concerns = if own { is_own } else { ours.any(|one| with_mutants.contains(&*one.name)) };
            package.published && has_trials && concerns
        };
        let started = Instant::now();
        let mut tasks = Vec::new();
        for package in self.build.packages.iter().filter(is_wanted) {
            if !self.built.insert((package.name.clone(), tool)) {
                continue;
            }
            let target = if tool == Tool::Loom { "lib" } else { "races" };
            let program = self.build.build(&package.name, &[target], tool)?.pop();
            let program =
                program.with_context(|| format!("cargo names no test program of {}", package.name))?;
            if tool == Tool::Loom {
                let tests = program.tests(&mut program.command(), TIME_LIMIT)?.into_iter();
                tasks.extend(
                    tests.filter(|test| test.contains(LOOM.name)).map(|test| (program.clone(), Some(test))),
                );
            } else {
                tasks.push((program, None));
            }
        }
        println!("{tool:?}: {} built in {:.1} s", tasks.len(), started.elapsed().as_secs_f64());
        let work = |(program, test)| {
            let found = AtomicUsize::new(0);
            let mut trial =
                Trial { program, tool, test, took: Duration::ZERO, reached: BTreeSet::new(), found };
            let ran = trial.run(Choice::Reach, FEW)?;
            // One that takes longer is among the last, and shows in the job `loom` that it passes.
            let is_slow = ran.status.is_none() && tool == Tool::Loom;
            let (name, how) = (trial.name(), ran.how());
            ensure!(ran.passed() || is_slow, "{name} has to pass without a mutant ({how}):\n{}", ran.log);
            (trial.took, trial.reached) = (ran.took, reached(&ran));
            Ok(trial)
        };
        let mut trials = Vec::new();
        job_queue::try_run(tasks, job_queue::processors(), work, |trial| {
            println!("{}: {:.1} s without a mutant", trial.name(), trial.took.as_secs_f64());
            trials.push(trial);
        })?;
        Ok(trials)
    }
}

/// Runs those of `trials` that come to a mutant, for each that is `left`, up to the first that fails; that mutant is not left then.
fn try_each(
    trials: Vec<&Trial>,
    preemptions: &str,
    left: &mut BTreeSet<usize>,
    mut done: impl FnMut(Outcome),
) -> Result<()> {
    let work = |at: usize| {
        let mut of_mutant: Vec<_> = trials.iter().filter(|trial| trial.reached.contains(&at)).collect();
        // ORDER: Relaxed: a hint.
        of_mutant.sort_by_key(|trial| (usize::MAX - trial.found.load(Ordering::Relaxed), trial.took));
        for trial in of_mutant {
            let ran = trial.run(Choice::Mutant(at), preemptions)?;
            // One that does not end has found nothing.
            if ran.status.is_some() && !ran.passed() {
                // ORDER: Relaxed, likewise.
                trial.found.fetch_add(1, Ordering::Relaxed);
                let word = if trial.tool == Tool::Loom { "models" } else { "races" };
                return Ok(Outcome { at, caught: Some((word, trial.name())), is_reached: true });
            }
        }
        Ok(Outcome { at, caught: None, is_reached: false })
    };
    job_queue::try_run(left.iter().copied().collect(), job_queue::processors(), work, |outcome| {
        if outcome.caught.is_some() {
            left.remove(&outcome.at);
            done(outcome);
        }
    })
}

impl Trial {
    fn name(&self) -> String {
        format!("`{}` {}", self.program.package, self.test.as_ref().unwrap_or(&self.program.target))
    }

    fn run(&self, choice: Choice, preemptions: &str) -> Result<Ran> {
        let tests: Vec<_> = self.test.iter().map(String::as_str).collect();
        let limit = if choice == Choice::Reach && self.tool == Tool::Loom { SLOW } else { TIME_LIMIT };
        let set = [(LOOM.variable, preemptions), ("BUFTEST_COUNT", "5000")];
        run(&self.program, &tests, self.tool, choice, limit, &set)
    }
}
