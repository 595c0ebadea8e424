//! `record` and `run`: run a program with the library that records in front of it.

mod found;
mod library;

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use self::found::{Recording, recordings};
use self::library::Library;
use crate::advise;
use crate::command::Answer;

/// From one look at the program to the next.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program that was told to end may take.
const GRACE: Duration = Duration::from_secs(10);

/// A program, and how it is recorded.
#[derive(Debug, clap::Args)]
struct Recorded {
    /// The file that the recording is written to [default: the program's name and `.heap`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What is recorded: some of `exact`, `min=512`, `max=1MiB`, `rate=1MiB`, `depth=24`,
    /// `limit=1GiB`, with commas
    #[arg(long, value_name = "SETTINGS")]
    settings: Option<String>,
    /// End the program after this number of seconds, as `kill` does
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    ends_after: Option<u64>,
    /// The library that records, in place of the one that is built by itself
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Records a program's heap.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordOptions {
    #[command(flatten)]
    recorded: Recorded,
}

/// Records a program's heap, and says whether a pool would help it.
#[derive(Debug, clap::Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    how: advise::How,
    #[command(flatten)]
    recorded: Recorded,
}

impl RecordOptions {
    /// Records the program, and prints which files have it.
    ///
    /// # Errors
    ///
    /// When the program cannot be run, or nothing of it was recorded.
    pub(crate) fn run(&self) -> Result<Answer> {
        for recording in self.recorded.record()? {
            println!("{recording}");
        }
        Ok(Answer::Yes)
    }
}

impl RunOptions {
    /// Records the program, and prints the answer for its largest process.
    ///
    /// # Errors
    ///
    /// As [`RecordOptions::run`], and as `advise`.
    pub(crate) fn run(&self) -> Result<Answer> {
        let recordings = self.recorded.record()?;
        // What the answer is printed to may be read by a program.
        recordings.iter().for_each(|recording| eprintln!("{recording}"));
        self.how.run(&recordings[0].path)
    }
}

impl Recorded {
    /// Runs the program, and returns what was recorded of it: at least one, the largest first.
    fn record(&self) -> Result<Vec<Recording>> {
        let library = Library::find(self.library.as_deref())?;
        let output = match &self.output {
            Some(output) => output.clone(),
            None => {
                let name = Path::new(&self.program[0]).file_name().context("the program has no name")?;
                let mut name = name.to_owned();
                name.push(".heap");
                name.into()
            }
        };
        // An older one is not to be taken for this one's.
        if let Err(error) = fs::remove_file(&output) {
            ensure!(
                error.kind() == std::io::ErrorKind::NotFound,
                "cannot replace {}: {error}",
                output.display()
            );
        }
        let output = std::path::absolute(&output).context("the current folder has no path")?;
        let started = SystemTime::now();
        let status = self.run_program(&library, &output)?;
        if !status.success() {
            eprintln!("The program ended with {status}.");
        }
        let mut files = recordings(&output, started)?;
        if files.is_empty() {
            bail!(
                "nothing was recorded. The library sees no program that is linked statically, or that brings its own \
                 `malloc` under that name. A Rust program can be recorded by `buftrace::RecordingAlloc`"
            );
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        if files.len() > 1 {
            eprintln!("The program has several processes. The first file has most.");
        }
        Ok(files)
    }

    /// Runs the program until it ends, or has to end, with the library in front of it.
    fn run_program(&self, library: &Library, output: &Path) -> Result<ExitStatus> {
        let (interrupted, terminated) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        // An interrupt from the terminal is for the program. This one continues when it has ended.
        signal_hook::flag::register(SIGINT, interrupted).context("cannot look after interrupts")?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminated)).context("cannot look after signals")?;
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).arg0(&self.program[0]);
        command.env("LD_PRELOAD", library.preload()).env("BUFTRACE", output);
        match &self.settings {
            Some(settings) => command.env("BUFTRACE_OPTIONS", settings),
            None => command.env_remove("BUFTRACE_OPTIONS"),
        };
        let program = Path::new(&self.program[0]).display();
        let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        let end = self.ends_after.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for the program")? {
                return Ok(status);
            }
            // ORDER: Relaxed: a flag alone.
            if terminated.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end) {
                return stop(&mut child);
            }
            thread::sleep(LOOK);
        }
    }
}

/// Tells the program to end, and ends it if it does not.
fn stop(child: &mut Child) -> Result<ExitStatus> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM).context("cannot tell the program to end")?;
    }
    let started = Instant::now();
    while started.elapsed() < GRACE {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill().context("cannot end the program")?;
    child.wait().context("cannot wait for the program")
}
