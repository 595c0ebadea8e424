//! Test programs: built with one command, found by what cargo says of them, and run as cargo would run them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};

use crate::packages::Package;
use crate::shell;
use crate::steps::Outcome;

/// A program that cargo built: tests, or an example.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) package: String,
    /// As in the manifest: `lib`, `bin`, `test`, `example`.
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) executable: PathBuf,
    /// The package's folder, where cargo runs its tests.
    folder: PathBuf,
    version: String,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` for one that was ended because it took too long.
    pub(crate) status: Option<ExitStatus>,
    /// What it printed, on both streams.
    pub(crate) log: String,
    pub(crate) took: Duration,
}

/// Builds what `command` asks for, a `cargo test` without `--no-run`, and returns the programs in cargo's order.
pub(crate) fn build(command: &mut Command, packages: &[Package]) -> Result<Vec<Program>> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let text = shell::output(command)?;
    let of: BTreeMap<&Path, &Package> =
        packages.iter().map(|package| (package.folder.as_path(), package)).collect();
    let mut programs = Vec::new();
    for message in Message::parse_stream(text.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message.context("cannot read what cargo says")? {
            programs.extend(program(&artifact, &of)?);
        }
    }
    Ok(programs)
}

/// The program that cargo built; none for a library, a dependency, and for programs that tests start.
fn program(artifact: &Artifact, packages: &BTreeMap<&Path, &Package>) -> Result<Option<Program>> {
    let Artifact { target, profile, manifest_path, executable: Some(executable), .. } = artifact else {
        return Ok(None);
    };
    if !profile.test && !target.is_kind(TargetKind::Example) {
        return Ok(None);
    }
    let folder = manifest_path.parent().context("a manifest has a folder")?.as_std_path();
    let package = packages.get(folder).with_context(|| format!("no package in {}", folder.display()))?;
    Ok(Some(Program {
        package: package.name.clone(),
        kind: target.kind.first().map(ToString::to_string).unwrap_or_default(),
        target: target.name.clone(),
        executable: executable.into(),
        folder: folder.to_owned(),
        version: package.version.clone(),
    }))
}

impl Program {
    /// What a reader knows it by: the package, and the target if it is not the library.
    pub(crate) fn name(&self) -> String {
        match self.kind.as_str() {
            "lib" => format!("{} unit tests", self.package),
            "bin" => format!("{} unit tests of `{}`", self.package, self.target),
            "example" => format!("{} example `{}`", self.package, self.target),
            _ => format!("{} {}", self.package, self.target),
        }
    }

    /// The command that runs it where cargo would, with the variables that tests look at.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("CARGO_PKG_NAME", &self.package).env("CARGO_PKG_VERSION", &self.version);
        command.env("CARGO", shell::cargo().get_program());
        command
    }

    /// Runs `command`, one of this program's, until it ends or `limit` is over.
    pub(crate) fn run(&self, command: &mut Command, limit: Duration) -> Result<Ran> {
        run(command, &self.executable.with_extension("log"), limit)
    }

    /// The same, for a command that may run beside another of this program's: what it prints is kept by this name.
    pub(crate) fn run_as(&self, name: &str, command: &mut Command, limit: Duration) -> Result<Ran> {
        run(command, &self.executable.with_extension(format!("{name}.log")), limit)
    }

    /// The names of its tests; none for a program without the test harness, which `command` lets run.
    pub(crate) fn tests(&self, command: &mut Command, limit: Duration) -> Result<Vec<String>> {
        let listed = self.run(command.args(["--list", "--format", "terse"]), limit)?;
        let names = listed.log.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// Runs `command` until it ends or `limit` is over. What it prints is written to `log`: a pipe would be kept open by a process that it
/// leaves behind.
pub(crate) fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<Ran> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", shell::show(command)))?;
    let status = wait(&mut child, limit)?;
    let took = started.elapsed();
    Ok(Ran { status, log: String::from_utf8_lossy(&fs::read(log)?).into_owned(), took })
}

/// How many tests passed, by what `cargo test` or one test program printed.
pub(crate) fn passed(log: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok();
    log.lines().filter_map(count).sum()
}

/// Waits for a process, and ends it when `limit` is over.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    const LOOKS_EACH: Duration = Duration::from_millis(5);
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOKS_EACH);
    }
}

impl Ran {
    /// Whether it ended well, and in time.
    pub(crate) fn passed(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How many tests passed.
    pub(crate) fn count(&self) -> u64 {
        passed(&self.log)
    }

    /// How it ended: what it printed of failures, unless it passed.
    pub(crate) fn outcome(&self) -> Result<Outcome> {
        ensure!(self.passed(), "{}\n{}", self.how(), shell::failures(&self.log));
        Ok(Outcome::Passed)
    }

    /// How it ended, in words.
    pub(crate) fn how(&self) -> String {
        self.status.map_or_else(|| "ended because it took too long".to_owned(), |status| status.to_string())
    }
}
