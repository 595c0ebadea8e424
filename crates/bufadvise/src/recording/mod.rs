//! `record` and `run`: run a program with the library that records in front of it.

mod inspect;
mod library;
mod program;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use buftrace::format;
use buftrace::heap_settings::{EXPECTED, Settings};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use self::library::Library;
use self::program::Signals;
use crate::input::{self, Input};
use crate::{advise, print};

/// A program, and how it is recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordOptions {
    /// The file of the recording. By default `record` writes to the program's name and `.heap`, and
    /// `run` keeps no recording
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What is recorded: any of `exact`, `min=512`, `rate=1MiB`, `depth=24`, `limit=1GiB`,
    /// separated by commas
    #[arg(long, value_name = "SETTINGS", value_parser = settings)]
    settings: Option<String>,
    /// End the program after this number of seconds, as `kill` does
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    ends_after: Option<u64>,
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Records a program's heap, and says whether a pool would help it.
#[derive(Debug, clap::Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    context: advise::Context,
    #[command(flatten)]
    recorded: RecordOptions,
}

impl RecordOptions {
    /// Records the program, and prints which file has it.
    ///
    /// # Errors
    ///
    /// When the program cannot be run, or nothing of it was recorded.
    pub(crate) fn run(&self) -> Result<bool> {
        let output = match &self.output {
            Some(output) => output.clone(),
            None => {
                let name = Path::new(&self.program[0]).file_name().context("the program has no name")?;
                with_end(name, ".heap").into()
            }
        };
        let (input, notes) = self.record(Some(&output), &Signals::new()?)?;
        // The standard output is the program's.
        let file = print::in_line(&output.display().to_string());
        print::error_line(format_args!("{file}: {}.{notes}", input.ending()))?;
        ensure!(!input.is_empty(), "no request was recorded. {}", input.why_few());
        Ok(true)
    }

    /// Runs the program, and returns what was recorded of it, and what else is to be said of that.
    /// It is in the file `output` too, unless it is nothing.
    fn record(&self, output: Option<&Path>, signals: &Signals) -> Result<(Input, String)> {
        let allocator = inspect::check(&self.program[0])?;
        let folder = match output {
            Some(output) => {
                is_replaced(output)?;
                with_end(output.as_os_str(), ".part").into()
            }
            None => env::temp_dir().join(format!("bufadvise-{}-{}", process::id(), fastrand::u64(..))),
        };
        let library = Library::new()?;
        let folder = Folder::new(folder)?;
        let file = std::path::absolute(folder.0.join("recording")).context("this folder has no path")?;
        let ends_after = self.ends_after.map(Duration::from_secs);
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).env("LD_PRELOAD", library.preload()).env("BUFTRACE", &file);
        match &self.settings {
            Some(settings) => command.env("BUFTRACE_OPTIONS", settings),
            None => command.env_remove("BUFTRACE_OPTIONS"),
        };
        let (process, status) = program::run(command, ends_after, signals)?;
        let mut notes = String::new();
        if !status.success() {
            notes += &format!(" The program ended with {status}.");
        }
        if let Some(name) = allocator {
            notes +=
                &format!(" Its allocator is {name}, and what is replayed without a pool is the C library's.");
        }
        // The recorder takes the end of the name away, unless the program did not come to that.
        for path in [file.with_extension("part"), file] {
            let is_its =
                |input: &Input| matches!(input, Input::Heap(heap) if heap.info().pid == u64::from(process));
            let Some(input) = input::read(&path).ok().filter(is_its) else { continue };
            match output {
                Some(output) if input.is_empty() => {
                    let output = print::in_line(&output.display().to_string());
                    notes += &format!(" Nothing was recorded, and {output} is not written.");
                }
                Some(output) => rename(&path, output).map_err(|error| {
                    // What was recorded is not lost.
                    std::mem::forget(folder);
                    error.context(format!("the recording is {}", path.display()))
                })?,
                None => {}
            }
            return Ok((input, notes));
        }
        bail!(
            "nothing was recorded. If the recorder gave a reason, it stands above. A program that starts another in its place is \
             recorded until then: name the other one.{notes}"
        )
    }
}

/// The folder of one recording while it is made, which goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new(path: PathBuf) -> Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
                "{} is there: another recording is written to it, or one was killed. Wait, or delete it",
                path.display()
            ),
            made => made.with_context(|| format!("cannot make {}", path.display()))?,
        }
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be deleted stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl RunOptions {
    /// Records the program, and prints the answer.
    ///
    /// # Errors
    ///
    /// As [`RecordOptions::run`], and as `advise`.
    pub(crate) fn run(&self) -> Result<bool> {
        let signals = Signals::new()?;
        let recorded = self.recorded.record(self.recorded.output.as_deref(), &signals);
        let told = signals.told();
        // A signal may end this program at any time from here on.
        drop(signals);
        if let Some(signal) = told {
            signal_hook::low_level::emulate_default_handler(signal).context("cannot end as it was told")?;
        }
        let (input, notes) = recorded?;
        let (text, is_answer) = self.context.answer(input, &notes, Instant::now())?;
        print::error_line(text)?;
        Ok(is_answer)
    }
}

fn with_end(name: &OsStr, end: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(end);
    name
}

/// Returns settings that the recorder understands.
fn settings(text: &str) -> Result<String> {
    let are_known = Settings::DEFAULT.parse(text.as_bytes()).is_some();
    ensure!(are_known, "expected some of {EXPECTED}");
    Ok(text.to_owned())
}

/// Returns whether a recording of this user has this name. What else has it is not replaced.
fn is_replaced(output: &Path) -> Result<bool> {
    let what = output.display();
    let Ok(found) = fs::symlink_metadata(output) else { return Ok(false) };
    let mut start = Vec::new();
    if found.is_file() {
        let file = File::open(output).with_context(|| format!("cannot read {what}"))?;
        let read = file.take(format::MAGIC.len() as u64).read_to_end(&mut start);
        read.with_context(|| format!("cannot read {what}"))?;
    }
    ensure!(start == format::MAGIC, "{what} is no recording, and is not replaced");
    let own = rustix::process::geteuid().as_raw();
    ensure!(found.uid() == own, "{what} is the recording of another user, and is not replaced");
    Ok(true)
}

/// Gives a recording its name, unless something else has it by now.
fn rename(part: &Path, output: &Path) -> Result<()> {
    let flags = if is_replaced(output)? { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    renameat_with(CWD, part, CWD, output, flags).context("cannot rename it")
}
