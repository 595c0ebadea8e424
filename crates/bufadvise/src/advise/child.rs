//! The work of a child process: one replay of one candidate.

use std::io;

use anyhow::{Context, Result, ensure};

use super::candidate::Candidate;
use super::replay::Replay;
use super::wire;
use crate::print;

/// What a child process is told, besides the schedule on its standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Job {
    candidate: Candidate,
}

impl Job {
    /// Does it, and prints what it found.
    ///
    /// # Errors
    ///
    /// When the candidate cannot be built, or loses bytes.
    pub(crate) fn run(self) -> Result<()> {
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // Other workers would wait for one that has panicked.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            std::process::exit(101);
        }));
        let schedule = wire::read(io::stdin().lock())?;
        let replayed = self.candidate.accept(schedule.pools, Replay(&schedule));
        let replayed = replayed.with_context(|| format!("cannot build {}", self.candidate))?;
        ensure!(replayed.wrong == 0, "{} buffers came back with wrong bytes", replayed.wrong);
        print::line(serde_json::to_string(&replayed)?)
    }
}
