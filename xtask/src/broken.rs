//! `cargo xtask broken`: each trial once against a build with a known defect, which has to make it fail (T20).
//!
//! A trial that passes there proves nothing anywhere, so this command fails then. It fails as well when a trial does not pass on
//! the sound build, which is tried first: only so is a failure the defect's. The defects are patches (`mutants`), which are applied to
//! a copy of the sources. Each must apply, and the build must succeed, so that a defect that rotted is not taken for one that was found.
//!
//! Most defects are in one build (`combined`). The others are built by themselves. Each package's tests are built by a command of their
//! own, with the features that they have alone: with others beside them `bufcore` would have more.

mod combined;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::combined::Combined;
use crate::job_queue;
use crate::mutant_build::{Choice, MutantBuild, Tool, read, run};
use crate::mutants::{self, Case, Mutant};
use crate::orderings;
use crate::test_binaries::{Program, Ran};

const FOLDER: &str = "target/broken";
/// On the sound build, all trials of a program together end within it.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// With a defect, a trial has this number of times what all of them take on the sound build, and not less than the other: what takes
/// longer hangs.
const TIMES_SOUND: u32 = 4;
const LEAST_LIMIT: Duration = Duration::from_secs(20);
/// This number of tests runs at once for each processor: with a defect many of them sleep until they give up.
const AT_ONCE: usize = 2;
/// How often a test is run with a defect that it did not find: what threads do decides about some of them.
const ATTEMPTS: usize = 4;
const SET: [(&str, &str); 1] = [("BUFTEST_COUNT", "20000")];
/// With a defect, tests of generated programs end at the first that shows it, so there are enough that luck plays no part.
const SET_WITH_DEFECT: [(&str, &str); 2] = [SET[0], ("BUFTEST_CASES", "512")];
/// In every other attempt glibc overwrites freed memory, so that who uses it does not find what was there. Who searches it for secrets
/// finds them in the others.
const SPOILED: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.perturb=90");

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

/// A case, the defect that it finds, and the number of that among those that were chosen.
#[derive(Debug, Clone, Copy)]
struct Chosen<'a> {
    number: usize,
    mutant: &'a Mutant,
    case: &'a Case,
}

/// A test program: target, and what it runs under.
type Wanted<'a> = (&'a str, Tool);

impl<'a> Chosen<'a> {
    fn wanted(&self) -> Wanted<'a> {
        (&self.case.target, self.case.tool)
    }
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
        let mutants: Vec<_> = mutants.iter().filter(|mutant| self.has(mutant)).collect();
        let numbered = mutants.iter().enumerate();
        let chosen: Vec<_> = numbered
            .flat_map(|(number, mutant)| mutant.cases.iter().map(move |case| Chosen { number, mutant, case }))
            .filter(|chosen| self.has_case(chosen.case))
            .collect();
        ensure!(
            !chosen.is_empty(),
            "no known defect fits these options: `cargo xtask broken --list` prints all names"
        );
        let started = Instant::now();
        let mut build = MutantBuild::new(FOLDER)?;
        let combined = Combined::of(&mutants, read)?;
        println!("{} of {} defects are in one build", combined.count(), mutants.len());
        let mut survived = Vec::new();
        build.put(combined.files(), mutants.len())?;
        for (package, cases) in by_package(chosen.iter().copied()) {
            let built = built(&build, package, &cases)?;
            // Models have shown this in the job `loom`.
            let sound = if self.loom { BTreeMap::new() } else { sound(package, &cases, &built)? };
            let within = cases.into_iter().filter(|one| combined.has(one.number)).collect();
            survived.extend(try_out(within, &built, &sound)?);
        }
        for (number, mutant) in mutants.iter().enumerate().filter(|(number, _)| !combined.has(*number)) {
            build.put(mutant.apply(read)?, 1)?;
            for (package, cases) in by_package(chosen.iter().copied().filter(|one| one.number == number)) {
                let built = built(&build, package, &cases).with_context(|| mutant.name.clone())?;
                survived.extend(try_out(cases, &built, &BTreeMap::new())?);
            }
        }
        let count = survived.len();
        ensure!(
            count == 0,
            "{count} tests passed with the defect that they must find: {}",
            survived.join(", ")
        );
        println!(
            "{} trials failed with their defects, as they must, in {} s",
            chosen.len(),
            started.elapsed().as_secs()
        );
        Ok(())
    }

    fn has(&self, mutant: &Mutant) -> bool {
        self.defect.as_deref().is_none_or(|name| name == mutant.name || name == mutant.defect())
    }

    fn has_case(&self, case: &Case) -> bool {
        match case.tool {
            Tool::Loom => self.loom,
            Tool::ThreadSanitizer => !self.loom && !self.stable,
            Tool::Plain | Tool::DefaultFeatures | Tool::Shuttle => !self.loom,
        }
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
    for (Mutant { name, what, .. }, case) in rows {
        let target = if case.has_harness() { String::new() } else { format!(" `{}`", case.target) };
        let tests: String = case.tests.iter().map(|name| format!(" `{name}`")).collect();
        println!(
            "| {} | `{name}` | {what} | `{}`{target}{tests}{} |",
            case.trial,
            case.package,
            case.tool.label()
        );
    }
}

/// Cases by the packages whose tests they are.
fn by_package<'a>(chosen: impl Iterator<Item = Chosen<'a>>) -> BTreeMap<&'a str, Vec<Chosen<'a>>> {
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for one in chosen {
        packages.entry(&*one.case.package).or_default().push(one);
    }
    packages
}

/// Builds the test programs that some cases of a package need.
fn built<'a>(
    build: &MutantBuild,
    package: &str,
    cases: &[Chosen<'a>],
) -> Result<BTreeMap<Wanted<'a>, Program>> {
    let started = Instant::now();
    let wanted: BTreeSet<_> = cases.iter().map(Chosen::wanted).collect();
    let mut built = BTreeMap::new();
    for tool in wanted.iter().map(|wanted| wanted.1).collect::<BTreeSet<_>>() {
        let targets: Vec<_> =
            wanted.iter().filter(|wanted| wanted.1 == tool).map(|wanted| wanted.0).collect();
        let programs = build.build(package, &targets, tool)?;
        for target in targets {
            let is_it =
                |program: &&Program| program.target == target || target == "lib" && program.kind == "lib";
            let program = programs.iter().find(is_it).cloned();
            let program =
                program.with_context(|| format!("cargo names no test program `{target}` of {package}"))?;
            built.insert((target, tool), program);
        }
    }
    println!("{package}: built in {:.1} s", started.elapsed().as_secs_f64());
    Ok(built)
}

/// Runs each test of some cases with its defect, and returns those that do not see it. `limits` has how long a program may take, where
/// that is known.
fn try_out(
    cases: Vec<Chosen<'_>>,
    built: &BTreeMap<Wanted<'_>, Program>,
    limits: &BTreeMap<Wanted<'_>, Duration>,
) -> Result<Vec<String>> {
    let mut survived = Vec::new();
    // A target without harness has no names: it runs as a whole.
    let tests = |one: &Chosen<'_>| {
        let whole = one.case.tests.is_empty().then_some(None);
        one.case.tests.iter().map(|test| Some(test.clone())).chain(whole).collect::<Vec<_>>()
    };
    let tasks = cases.iter().flat_map(|one| tests(one).into_iter().map(move |test| (one, test))).collect();
    let work = |(one, test): (&Chosen<'_>, Option<String>)| {
        let Chosen { number, mutant, case } = one;
        let row = format!(
            "{} {} {} {}",
            case.trial,
            mutant.name,
            case.package,
            test.as_ref().unwrap_or(&case.target)
        );
        let names: Vec<_> = test.iter().map(String::as_str).collect();
        let choice = Choice::Mutant(*number);
        let limit = limits.get(&one.wanted()).copied().unwrap_or(TIME_LIMIT);
        let program = &built[&one.wanted()];
        let mut attempt = 1;
        let set = [SET_WITH_DEFECT[0], SET_WITH_DEFECT[1], SPOILED];
        loop {
            let set = &set[..SET_WITH_DEFECT.len() + attempt % 2];
            let ran = run(program, &names, case.tool, choice, limit, set);
            let ran = ran.with_context(|| row.clone())?;
            if !ran.passed() || attempt == ATTEMPTS {
                return anyhow::Ok((row, attempt, ran));
            }
            attempt += 1;
        }
    };
    job_queue::try_run(tasks, AT_ONCE * job_queue::processors(), work, |(row, attempt, ran)| {
        if ran.passed() {
            println!("{row}: PASSED, but it must fail");
            survived.push(row);
        } else {
            let took = ran.took.as_secs_f64();
            println!("{row}: failed, as it must (attempt {attempt}, {}, {took:.1} s)", how(&ran));
        }
    })?;
    Ok(survived)
}

/// Runs the tests of all cases of a package without a defect, where they have to pass. Returns how long a test may take with a defect.
fn sound<'a>(
    package: &str,
    cases: &[Chosen<'_>],
    built: &BTreeMap<Wanted<'a>, Program>,
) -> Result<BTreeMap<Wanted<'a>, Duration>> {
    let mut limits = BTreeMap::new();
    for (wanted, program) in built {
        let mut took = Duration::ZERO;
        let of_program = || cases.iter().filter(|one| one.wanted() == *wanted).map(|one| one.case);
        let tests: BTreeSet<&str> = of_program().flat_map(|case| &case.tests).map(|test| &**test).collect();
        let tests: Vec<&str> = tests.into_iter().collect();
        let has_harness = of_program().any(Case::has_harness);
        // A harness takes many names, and runs them side by side; other programs take one.
        let runs = if has_harness || tests.is_empty() { vec![&tests[..]] } else { tests.chunks(1).collect() };
        for names in runs {
            let ran = run(program, names, wanted.1, Choice::None, TIME_LIMIT, &SET)?;
            let ran_all = !has_harness || ran.count() == names.len() as u64;
            ensure!(
                ran.passed() && ran_all,
                "these tests must pass without a defect: {} {names:?} ({}):\n{}",
                program.name(),
                how(&ran),
                ran.log
            );
            took += ran.took;
        }
        limits.insert(*wanted, (took * TIMES_SOUND).clamp(LEAST_LIMIT, TIME_LIMIT));
        println!("{package}: {} tests of {} pass without a defect", tests.len().max(1), program.name());
    }
    Ok(limits)
}

/// How a program ended. Signals and time-outs of the processes that trials start for themselves are in the log.
fn how(ran: &Ran) -> String {
    let started_alone = ran.log.split_once("failed in its own process (");
    let ended = started_alone.and_then(|(_, rest)| Some(rest.split_once("):")?.0));
    match ended.filter(|ended| ended.starts_with("signal")) {
        Some(signal) => signal.to_owned(),
        None if ran.log.contains("did not end within") => "no end within the trial's limit".to_owned(),
        None if ran.log.contains("ThreadSanitizer: data race") => "data race reported".to_owned(),
        None => ran.how(),
    }
}
