//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(target_os = "linux")]
use crate::recording;
use crate::{advise, print, show};

/// The exit codes.
const EXIT_CODES: &str = "Exit codes:
  0  done, whatever the answer
  1  no answer: the recording cannot be replayed in time, is too large, or no pool is within
     the limit
  2  bad input: no such file, program or option, no recording; nothing was recorded;
     the answer could not be printed";

/// Says which buffer pool fits a recorded program, or that none would help.
#[derive(Debug, Parser)]
#[command(name = "bufadvise", version, after_help = EXIT_CODES)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run a program, record what it requests of its allocator, and say whether a pool would help
    #[cfg(target_os = "linux")]
    #[command(after_help = EXIT_CODES)]
    Run(Box<recording::RunOptions>),
    /// Run a program, and record what it requests of its allocator
    #[cfg(target_os = "linux")]
    #[command(after_help = EXIT_CODES)]
    Record(recording::RecordOptions),
    /// Say whether a pool would help a recorded program, which one, and with which settings
    #[command(after_help = EXIT_CODES)]
    Advise(Box<advise::Options>),
    /// Show what is in a recording: sizes, lifetimes, bytes in use over time, the call sites that
    /// request and hold most
    #[command(after_help = EXIT_CODES)]
    Show(show::Options),
    /// Replay a candidate once
    #[command(hide = true)]
    Child(Box<advise::Job>),
}

/// Runs the program `bufadvise` with these arguments, the first of which is its name.
///
/// Returns the exit code: 0 for an answer, 1 for none, 2 for bad input.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match Command::try_parse_from(arguments) {
        Ok(command) => command,
        Err(error) => {
            // It may be help that was asked for.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    // A file that may not be longer is an error to report. What this program starts has the signal
    // as usual.
    #[cfg(target_os = "linux")]
    let _ = signal_hook::flag::register(libc::SIGXFSZ, std::sync::Arc::default());
    let answer = match command.task {
        #[cfg(target_os = "linux")]
        Task::Run(options) => options.run(),
        #[cfg(target_os = "linux")]
        Task::Record(options) => options.run(),
        Task::Advise(options) => options.run(),
        Task::Show(options) => options.run(),
        Task::Child(job) => job.run().map(|()| true),
    };
    // Not by returning the error: with `RUST_BACKTRACE` set that would bury what failed under a
    // backtrace.
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Where it cannot be printed there is nobody to tell.
            let _ = print::error_line(format_args!("error: {}", print::in_line(&format!("{error:#}"))));
            ExitCode::from(2)
        }
    }
}
