//! Runs a program, and ends it.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// From one look at the program to the next.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program that was told to end may take.
const GRACE: Duration = Duration::from_secs(10);

/// What this program was told by signals while another runs. They do what they usually do again
/// when this is dropped.
#[derive(Debug)]
pub(super) struct Signals {
    to_end: Arc<AtomicUsize>,
    as_usual: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let signals = Self { to_end: Arc::default(), as_usual: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let registered = flag::register_conditional_default(signal, Arc::clone(&signals.as_usual));
            let to_end = Arc::clone(&signals.to_end);
            let registered = registered.and_then(|_| match signal {
                // SAFETY: the action stores a number, which a handler may.
                SIGINT => unsafe {
                    signal_hook_registry::register_sigaction(signal, move |info| {
                        // One from the terminal, by the kernel, is for the program, after whose
                        // end this one continues.
                        if info.si_code <= 0 {
                            // ORDER: Relaxed: a number alone.
                            to_end.store(signal as usize, Ordering::Relaxed);
                        }
                    })
                },
                _ => flag::register_usize(signal, to_end, signal as usize),
            });
            registered.context("cannot look after signals")?;
        }
        Ok(signals)
    }

    /// Returns the signal that told this program to end.
    pub(super) fn told(&self) -> Option<i32> {
        // ORDER: Relaxed: a number alone.
        match self.to_end.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // ORDER: Relaxed: a flag alone.
        self.as_usual.store(true, Ordering::Relaxed);
    }
}

/// Runs a program until it ends, or has to end, and returns its process number too.
pub(super) fn run(
    mut command: Command,
    ends_after: Option<Duration>,
    signals: &Signals,
) -> Result<(u32, ExitStatus)> {
    let program = command.get_program().to_owned();
    let mut child =
        command.spawn().with_context(|| format!("cannot run {}", Path::new(&program).display()))?;
    // A time that is too far away never comes.
    let end = ends_after.and_then(|time| Instant::now().checked_add(time));
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok((child.id(), status));
        }
        if signals.told().is_some() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok((child.id(), stop(&mut child)?));
        }
        thread::sleep(LOOK);
    }
}

/// Tells the program to end, and ends it if it does not.
fn stop(child: &mut Child) -> Result<ExitStatus> {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let told = Instant::now();
    while told.elapsed() < GRACE {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill().context("cannot end the program")?;
    child.wait().context("cannot wait for the program")
}
