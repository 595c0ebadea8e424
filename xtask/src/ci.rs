//! `cargo xtask ci`: the jobs of continuous integration, by name, in one order everywhere.

use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf, absolute};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::job_queue;
use crate::packages;
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};
use crate::test_binaries;
use crate::{
    api, clean_room, features, firmware, fuzz, instructions, models, nostd, outside, package, platforms,
    programs, sanitize,
};

/// What `rust-version` promises; checked by `msrv`.
const OLDEST: &str = "1.88";
/// No job takes nearly as long.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// `ci all` leaves out jobs that have not begun by then, and its table says so. On a slow machine the run would be stopped otherwise, and
/// say nothing of the jobs that ended.
const LATEST_START: Duration = Duration::from_secs(70 * 60);
/// Begins the line in which a job says what it took of the processors, in seconds.
const PROCESSOR_LINE: &str = "processor seconds: ";
/// Lines of a passed job's output that are shown.
const LAST_LINES: usize = 12;

/// Options of `ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The jobs to run; without any, all jobs run.
    #[arg(value_enum)]
    jobs: Vec<Job>,
    /// List the jobs, and run none.
    #[arg(long)]
    list: bool,
}

/// One job. `ci all` starts them in this order, one more at once than there are processors, since each waits now and then. What is long or
/// finds most comes early, so that nothing long is left for the end. The last one, which keeps all processors busy, runs alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Job {
    All,
    Fmt,
    Tidy,
    Clippy,
    Broken,
    Emulate,
    CleanRoom,
    Long,
    Sanitize,
    Fuzz,
    Features,
    BenchTest,
    Instructions,
    Docs,
    Package,
    Nostd,
    Loom,
    Cross,
    Msrv,
    MinimalVersions,
    Deny,
    Test,
    Busy,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if self.list {
            for job in Job::each() {
                println!("{}", job.name()?);
            }
            return Ok(());
        }
        if self.jobs.is_empty() || self.jobs.contains(&Job::All) {
            return all();
        }
        let mut steps = Steps::new("ci", self.jobs.len());
        for job in self.jobs {
            steps.step(&job.name()?, || job.run());
        }
        if let Some(seconds) = processor_seconds() {
            eprintln!("{PROCESSOR_LINE}{seconds:.1}");
        }
        steps.finish()
    }
}

/// Runs every job in a process of its own. The output of a job is kept until it ends, so that it is not mixed up.
fn all() -> Result<()> {
    let mut jobs: Vec<_> = Job::each().collect();
    // Other jobs' times would mean nothing beside it.
    jobs.retain(|job| *job != Job::Busy);
    if let Outcome::Passed = clean_room::possible()? {
        // The same command, in richer surroundings.
        jobs.retain(|job| *job != Job::Test);
    } else {
        jobs.retain(|job| *job != Job::CleanRoom);
    }
    let folder = shell::target_folder().join("ci");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut steps = Steps::new("ci", jobs.len() + 1);
    let started = Instant::now();
    let run = |job: Job| {
        if let Some(left_out) = Apart::left_out(started.elapsed()) {
            return (job, Ok(left_out));
        }
        eprintln!("==> ci: {job:?} begins");
        (job, job.run_apart(&folder))
    };
    let mut done = |(job, ran): (Job, Result<Apart>)| {
        let name = job.name().unwrap_or_default();
        match ran {
            Ok(Apart { outcome, took, processor }) => steps.add(&name, outcome, took, processor),
            Err(error) => steps.add(&name, Err(error), Duration::ZERO, None),
        }
    };
    job_queue::run(jobs, job_queue::processors() + 1, |job| job.group(), run, &mut done);
    done(run(Job::Busy));
    steps.finish()
}

/// The processor time of this process and of all processes that it waited for, where the system tells it: two jobs share the
/// processors, so how long a job took says less.
pub(crate) fn processor_seconds() -> Option<f64> {
    /// Each second has this number of ticks, for every processor that Linux runs on.
    const TICKS: f64 = 100.0;
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may have spaces: the state, then numbers; the four times are the twelfth to the fifteenth of all.
    let (_, fields) = text.rsplit_once(") ")?;
    let times: Vec<f64> = fields.split(' ').skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum::<f64>() / TICKS)
}

/// How a job ended that ran in a process of its own.
#[derive(Debug)]
struct Apart {
    outcome: Result<Outcome>,
    took: Duration,
    processor: Option<Duration>,
}

impl Apart {
    /// A job that would begin so long after the first one, if that is too late.
    fn left_out(after: Duration) -> Option<Self> {
        let reason = format!("the other jobs took more than {} minutes", LATEST_START.as_secs() / 60);
        let left_out = Self { outcome: Outcome::skipped(reason), took: Duration::ZERO, processor: None };
        (after > LATEST_START).then_some(left_out)
    }
}

impl Job {
    /// All jobs.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(|job| *job != Self::All)
    }

    /// As on the command line.
    pub(crate) fn name(self) -> Result<String> {
        let value = self.to_possible_value().context("every job has a name")?;
        Ok(value.get_name().to_owned())
    }

    /// Jobs of one group build in one folder, so that one would wait for the other. They share what they build.
    fn group(self) -> &'static str {
        match self {
            Self::Clippy
            | Self::Long
            | Self::BenchTest
            | Self::Instructions
            | Self::Docs
            | Self::Package
            | Self::Deny
            | Self::Test
            | Self::Busy => "target",
            Self::Sanitize | Self::Fuzz => "sanitize",
            _ => "",
        }
    }

    /// Runs the job in a process of its own, and says how it ended and how long it took.
    fn run_apart(self, folder: &Path) -> Result<Apart> {
        let name = self.name()?;
        let mut command = Command::new(env::current_exe().context("a program has a path")?);
        command.args(["ci", &name]);
        let log = folder.join(format!("{name}.log"));
        let ran = test_binaries::run(&mut command, &log, TIME_LIMIT)?;
        let outcome = if ran.passed() {
            let lines: Vec<_> = ran.log.trim_end().lines().collect();
            eprintln!("{}", lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"));
            Ok(skipped(&ran.log, &name).map_or(Outcome::Passed, Outcome::Skipped))
        } else {
            eprintln!("{}", ran.log.trim_end());
            ran.outcome()
        };
        let processor =
            ran.log.lines().rev().find_map(|line| line.strip_prefix(PROCESSOR_LINE)?.parse().ok());
        let processor = processor.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Apart { outcome, took: ran.took, processor })
    }

    fn run(self) -> Result<Outcome> {
        match self {
            Self::All => unreachable!("`all` was replaced by the jobs"),
            Self::Fmt => {
                shell::run(cargo().args(["fmt", "--all", "--check"]))?;
                // Workspaces of their own.
                let outside = programs::names()?.into_iter().map(|name| programs::manifest(&name));
                let others = [fuzz::MANIFEST, nostd::MANIFEST, firmware::MANIFEST].map(PathBuf::from);
                for manifest in others.into_iter().chain(outside) {
                    shell::run(cargo().args(["fmt", "--check", "--manifest-path"]).arg(manifest))?;
                }
            }
            Self::Clippy => {
                clippy(&["--workspace", "--all-targets", "--all-features"])?;
                // A package without features has the same lines in both.
                let mut libraries = packages::published()?;
                // A program asks for features of the libraries, which would be on for all of them.
                libraries.retain(|package| !package.is_program());
                let libraries = libraries.iter().flat_map(|one| ["--package", &one.name]);
                clippy(&["--lib", "--no-default-features"].into_iter().chain(libraries).collect::<Vec<_>>())?;
            }
            Self::Tidy => xtask(&["tidy"])?,
            Self::Docs => {
                docs()?;
                return api::check();
            }
            Self::Test => xtask(&["test"])?,
            Self::CleanRoom => return clean_room::run(),
            Self::Long => xtask(&["test", "--long"])?,
            Self::Features => features::check(&packages::published()?)?,
            Self::Nostd => return nostd::check(),
            Self::Loom => {
                models::LOOM.check()?;
                models::SHUTTLE.check()?;
            }
            Self::Sanitize => return sanitize::check(&sanitize::Sanitizer::ALL, &[]),
            Self::Fuzz => return fuzz::replay(),
            Self::Broken => xtask(&["broken"])?,
            Self::Busy => xtask(&["busy", "0.75"])?,
            Self::BenchTest => xtask(&["bench", "--test"])?,
            Self::Instructions => return instructions::check(false),
            Self::Msrv => return msrv(),
            Self::MinimalVersions => outside::check_oldest()?,
            Self::Cross => return platforms::cross(),
            Self::Emulate => return platforms::emulate(),
            Self::Package => package::check()?,
            Self::Deny => return deny(),
        }
        Ok(Outcome::Passed)
    }
}

/// Another command of this program.
fn xtask(arguments: &[&str]) -> Result<()> {
    crate::run(iter::once("xtask").chain(arguments.iter().copied()))
}

/// Why the job of this name was skipped, if the table that it printed last says so.
fn skipped(log: &str, name: &str) -> Option<String> {
    let row = log.lines().rfind(|line| line.split_whitespace().next() == Some(name))?;
    Some(row.split_once("  skipped: ")?.1.to_owned())
}

fn clippy(chosen: &[&str]) -> Result<()> {
    // One of the crates that the matrix compares builds a C library, in two minutes, with which nothing
    // is linked here. It does without when it is told of another.
    let instead = shell::target_folder().join("ci/libjemalloc.a");
    fs::create_dir_all(shell::target_folder().join("ci"))?;
    fs::write(&instead, "")?;
    let mut command = cargo();
    command.arg("clippy").args(chosen).args(["--", "-D", "warnings"]);
    shell::run(command.env("JEMALLOC_OVERRIDE", absolute(instead)?))
}

fn docs() -> Result<()> {
    for private in [None, Some("--document-private-items")] {
        let mut command = cargo();
        command.args(["doc", "--workspace", "--all-features", "--no-deps"]).args(private);
        shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    // rustdoc omits impls for a foreign type unless `bufworks` inlines that type.
    for (page, id) in [
        ("struct.Buf", "From%3CBuf%3CL%3E%3E-for-Bytes"),
        ("enum.AcquireError", "From%3CAcquireError%3E-for-Error-1"),
    ] {
        let page = shell::target_folder().join(format!("doc/bufworks/{page}.html"));
        ensure!(fs::read_to_string(&page)?.contains(id), "{} does not show {id}", page.display());
    }
    Ok(())
}

/// Builds with the oldest compiler that is promised, and sees that the promise is the one in the manifests.
fn msrv() -> Result<Outcome> {
    let manifest = std::fs::read_to_string("Cargo.toml")?;
    let stated = format!("rust-version = \"{OLDEST}\"");
    ensure!(manifest.contains(&stated), "Cargo.toml does not say `{stated}`");
    let Some(mut command) = shell::cargo_of(OLDEST) else {
        return Outcome::skipped(format!("toolchain {OLDEST} not installed"));
    };
    command.args(["check", "--all-features", "--target-dir", "target/msrv"]);
    for package in packages::published()? {
        command.args(["--package", &package.name]);
    }
    shell::run(&mut command)?;
    Ok(Outcome::Passed)
}

fn deny() -> Result<Outcome> {
    if !shell::works(cargo().args(["deny", "--version"])) {
        return Outcome::skipped("cargo-deny not installed");
    }
    shell::run(cargo().args(["deny", "--all-features", "check"]))?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn processor_time_goes_up() {
        let before = processor_seconds().expect("Linux tells it");
        let mut sum = 0_u64;
        while processor_seconds().expect("Linux tells it") < before + 0.05 {
            sum = std::hint::black_box((0..100_000).fold(sum, u64::wrapping_add));
        }
    }

    /// It is skipped with the reason, and not failed.
    #[test]
    fn a_job_that_is_late_is_left_out() {
        assert!(Apart::left_out(LATEST_START).is_none());
        let late = Apart::left_out(LATEST_START + Duration::from_secs(1)).expect("too late");
        let Ok(Outcome::Skipped(reason)) = &late.outcome else { panic!("{:?}", late.outcome) };
        assert_eq!(reason, "the other jobs took more than 70 minutes");
        let mut steps = Steps::new("ci", 1);
        steps.add("job", late.outcome, late.took, late.processor);
        assert!(steps.finish().is_ok());
    }

    #[test]
    fn a_skipped_job_is_seen() {
        let table = |result| format!("noise deny\n\nci    seconds  result\ndeny      0.1  {result}\n");
        assert_eq!(skipped(&table("skipped: no tool"), "deny").as_deref(), Some("no tool"));
        assert_eq!(skipped(&table("passed"), "deny"), None);
        assert_eq!(skipped("", "deny"), None);
    }
}
