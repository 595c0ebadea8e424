//! A server that runs, and its memory over time.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::system;

/// From one look at the memory to the next.
const EACH: Duration = Duration::from_millis(100);

/// A server in a process of its own, which ends with this.
#[derive(Debug)]
pub struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or does not say where it listens.
    pub fn start(mut command: Command) -> Result<Self> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.with_context(|| format!("cannot start {command:?}"))?;
        let input = child.stdin.take().context("its input is piped")?;
        let mut output = BufReader::new(child.stdout.take().context("its output is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| anyhow!("the server says `{}`", line.trim()))?;
        Ok(Self { child, input, output, address })
    }

    /// Its number, for the system.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it says of its pool.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn status<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.input.write_all(b"\n")?;
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server has ended");
        serde_json::from_str(&line).with_context(|| format!("the server says `{}`", line.trim()))
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    ///
    /// When the system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill, and waiting returns at once.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A look at the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start, in milliseconds.
    pub at: u64,
    /// Resident, in bytes.
    pub bytes: u64,
}

/// Looks at a process all the time.
#[derive(Debug)]
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    /// Begins with a first look.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(process: u32, begin: Instant) -> Result<Self> {
        let (stop, stopped) = channel();
        let watch = move || {
            let mut samples = Vec::new();
            // A process that has ended has no memory.
            while let Ok(bytes) = system::resident_about(process) {
                samples.push(Sample { at: begin.elapsed().as_millis() as u64, bytes });
                if stopped.recv_timeout(EACH) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            samples
        };
        let thread = thread::Builder::new().name("sampler".into()).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    /// All that it saw.
    ///
    /// # Panics
    ///
    /// When its thread did.
    #[must_use]
    pub fn finish(self) -> Vec<Sample> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
