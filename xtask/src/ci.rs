//! `cargo xtask ci`: the jobs of continuous integration, by name, in one order everywhere.

use std::iter;
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::beside::Beside;
use crate::packages;
use crate::shell::{self, cargo};
use crate::steps::{Outcome, Steps};
use crate::test::{default_env, some_ran};
use crate::{features, instructions, loom, nostd, package, platforms, proxy, sanitize, tidy};

/// What `rust-version` promises; checked by `msrv`.
const OLDEST: &str = "1.88";

/// Options of `ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The jobs; all of them unless some are named.
    #[arg(value_enum)]
    jobs: Vec<Job>,
}

/// One job. Their order is that of `ci all`: what fails fast comes first. There, some run beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Job {
    All,
    Fmt,
    Clippy,
    Tidy,
    Docs,
    Test,
    Soak,
    Features,
    Nostd,
    Loom,
    Sanitize,
    Broken,
    BenchTest,
    Instructions,
    Msrv,
    Cross,
    Emulate,
    Package,
    Deny,
}

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        if !self.jobs.is_empty() && !self.jobs.contains(&Job::All) {
            return run(&self.jobs, None);
        }
        let all = Job::value_variants().iter().copied().filter(|job| *job != Job::All);
        let (beside, here): (Vec<_>, Vec<_>) = all.partition(|job| job.runs_beside());
        if thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            let names = beside.iter().map(|job| job.name()).collect::<Result<Vec<_>>>()?;
            run(&here, Some(Beside::start(&names)?))
        } else {
            run(&[here, beside].concat(), None)
        }
    }
}

/// One job after the other, then the end of those that run beside them.
fn run(jobs: &[Job], beside: Option<Beside>) -> Result<()> {
    let mut steps = Steps::new("ci", jobs.len() + usize::from(beside.is_some()));
    for job in jobs {
        steps.step(&job.name()?, || job.run());
    }
    if let Some(beside) = beside {
        steps.step("those beside", || beside.finish());
    }
    steps.finish()
}

impl Job {
    fn name(self) -> Result<String> {
        let value = self.to_possible_value().context("every job has a name")?;
        Ok(value.get_name().to_owned())
    }

    /// Whether it runs beside the others: it builds in a folder of its own, so that neither waits for the other. These take about half of
    /// the time of all.
    fn runs_beside(self) -> bool {
        matches!(self, Self::Features | Self::Loom | Self::Sanitize | Self::Broken)
    }

    fn run(self) -> Result<Outcome> {
        match self {
            Self::All => unreachable!("`all` was replaced by the jobs"),
            Self::Fmt => shell::run(cargo().args(["fmt", "--all", "--check"]))?,
            Self::Clippy => {
                clippy("--all-features")?;
                clippy("--no-default-features")?;
            }
            Self::Tidy => xtask(&["tidy"])?,
            Self::Docs => docs()?,
            Self::Test => xtask(&["test"])?,
            Self::Soak => soak()?,
            Self::Features => features::check()?,
            Self::Nostd => return nostd::check(),
            Self::Loom => loom::check()?,
            Self::Sanitize => return sanitize::check(&sanitize::Sanitizer::ALL, &[]),
            Self::Broken => xtask(&["broken"])?,
            Self::BenchTest => {
                xtask(&["bench", "--test"])?;
                return proxy::check();
            }
            Self::Instructions => return instructions::check(false),
            Self::Msrv => return msrv(),
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

/// The soaks of the pool that several threads share for longer than in the tests. (The others are soaked by hand.)
fn soak() -> Result<()> {
    const SECONDS: &str = "60";
    let mut command = cargo();
    command.args(["test", "--release", "--all-features", "--package", "bufshard", "--test", "it", "t19_"]);
    default_env(&mut command, "BUFTEST_SOAK_SECONDS", SECONDS);
    some_ran(&shell::run_tests(&mut command)?)
}

fn clippy(features: &str) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", features, "--", "-D", "warnings"];
    shell::run(cargo().args(args))
}

fn docs() -> Result<()> {
    for private in [None, Some("--document-private-items")] {
        let mut command = cargo();
        command.args(["doc", "--workspace", "--all-features", "--no-deps"]).args(private);
        shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
        if private.is_none() {
            tidy::check_documentation(&shell::target_folder().join("doc"))?;
        }
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
