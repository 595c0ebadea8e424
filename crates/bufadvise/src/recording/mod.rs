//! `record` and `run`: run a program with the library that records in front of it.

mod library;
mod program;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use buftrace::{Profile, format};

use self::library::Library;
use self::program::Signals;
use crate::answer::Answer;
use crate::{advise, input, print};

/// A program, and how it is recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordOptions {
    /// The file that the recording is written to [default: the program's name and `.heap`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What is recorded: some of `exact`, `min=512`, `rate=1MiB`, `depth=24`, `limit=1GiB`,
    /// with commas
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
    pub(crate) fn run(&self) -> Result<Answer> {
        print::line(self.record()?.1)?;
        Ok(Answer::Yes)
    }

    /// Runs the program, and returns the file with the recording, and what is in it.
    fn record(&self) -> Result<(PathBuf, String)> {
        let output = match &self.output {
            Some(output) => output.clone(),
            None => {
                let name = Path::new(&self.program[0]).file_name().context("the program has no name")?;
                with_end(name, ".heap").into()
            }
        };
        let output = std::path::absolute(&output).context("the current folder has no path")?;
        let part = PathBuf::from(with_end(output.as_os_str(), ".part"));
        check(&output, &part)?;
        let library = Library::find(self.library.as_deref())?;
        let signals = Signals::new()?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let ends_after = self.ends_after.map(Duration::from_secs);
        let mut command = program::command(&self.program);
        command.env("LD_PRELOAD", library.preload()).env("BUFTRACE", &output);
        match &self.settings {
            Some(settings) => command.env("BUFTRACE_OPTIONS", settings),
            None => command.env_remove("BUFTRACE_OPTIONS"),
        };
        let (process, status) = program::run(command, ends_after, &signals)?;
        if !status.success() {
            print::note(format_args!("The program ended with {status}."));
        }
        // The recorder gives the file its name, unless the program did not come to that.
        for path in [&output, &part] {
            let Ok(profile) = Profile::load(path) else { continue };
            let info = profile.info();
            if info.pid == u64::from(process) && info.started_at >= started {
                if path == &part {
                    fs::rename(&part, &output)
                        .with_context(|| format!("cannot rename {}", part.display()))?;
                }
                let (objects, lost) = (profile.objects().len(), profile.lost());
                let (path, ending) = (output.display(), input::ending(&profile));
                let recorded = format!("{path}: {objects} objects, {lost} lost; {ending}");
                return Ok((output.clone(), recorded));
            }
        }
        bail!(
            "nothing was recorded. If the recorder gave a reason, it stands above. It sees no program that is linked statically, or that brings its own `malloc` \
             under that name. A Rust program can be recorded by `buftrace::RecordingAlloc`"
        )
    }
}

impl RunOptions {
    /// Records the program, and prints the answer.
    ///
    /// # Errors
    ///
    /// As [`RecordOptions::run`], and as `advise`.
    pub(crate) fn run(&self) -> Result<Answer> {
        let (path, recorded) = self.recorded.record()?;
        // What the answer is printed to may be read by a program.
        print::note(recorded);
        self.context.run(&path)
    }
}

fn with_end(name: &OsStr, end: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(end);
    name
}

/// Looks whether a recording may have this name. Nothing is deleted.
fn check(output: &Path, part: &Path) -> Result<()> {
    let what = output.display();
    ensure!(
        fs::symlink_metadata(part).is_err(),
        "{} is there: another recording is written to it, or one was killed. Wait, or rename it",
        part.display()
    );
    let folder = output.parent().context("the recording has no file name")?;
    ensure!(folder.is_dir(), "{} is no folder", folder.display());
    let Ok(found) = fs::symlink_metadata(output) else { return Ok(()) };
    let mut start = Vec::new();
    if found.is_file() {
        let file = File::open(output).with_context(|| format!("cannot read {what}"))?;
        let read = file.take(format::MAGIC.len() as u64).read_to_end(&mut start);
        read.with_context(|| format!("cannot read {what}"))?;
    }
    let is_ours = found.is_file() && (start.is_empty() || start == format::MAGIC);
    ensure!(is_ours, "{what} is no recording, and is not replaced");
    Ok(())
}
