//! The first trial: connections that are silent after a burst.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use buftrials::system;
use buftrials::watch::{Sampler, Server};
use serde::{Deserialize, Serialize};

use crate::clients::{self, Client, Large, Payload};
use crate::engine::{Allocator, Engine, PROGRAM};
use crate::record::{IdleRun, Load, Phase};
use crate::server::Options;

/// A server with nothing to do is left alone this long before its memory is looked at.
const SETTLE: Duration = Duration::from_millis(100);

/// How many clients do what, for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The number of connections.
    pub clients: usize,
    /// Bytes of the frame that each of them sends once.
    pub large_bytes: usize,
    /// Small frames before the burst.
    pub warm: Duration,
    /// The time over which the clients begin with their large frame.
    pub spread: Duration,
    /// The time that each of them takes to send it.
    pub pace: Duration,
    /// Small frames after the burst.
    pub busy: Duration,
    /// Silence.
    pub silence: Duration,
    /// Small frames after the silence.
    pub after: Duration,
}

impl Course {
    /// The whole trial.
    pub const FULL: Self = Self {
        clients: 1000,
        large_bytes: 1 << 20,
        warm: Duration::from_secs(1),
        spread: Duration::from_millis(500),
        pace: Duration::from_secs(2),
        busy: Duration::from_secs(2),
        silence: Duration::from_secs(8),
        after: Duration::from_secs(3),
    };

    /// The same in a few seconds. Requests are counted as long: within one second they differ by a tenth from run to run, within three by
    /// much less.
    pub const QUICK: Self = Self {
        warm: Duration::from_millis(300),
        pace: Duration::from_millis(1500),
        busy: Duration::from_millis(500),
        silence: Duration::from_secs(3),
        ..Self::FULL
    };

    /// A few clients, to see that all of it works.
    pub const TEST: Self = Self {
        clients: 4,
        warm: Duration::from_millis(50),
        spread: Duration::from_millis(50),
        pace: Duration::from_millis(50),
        busy: Duration::from_millis(50),
        silence: Duration::from_millis(150),
        after: Duration::from_millis(50),
        ..Self::FULL
    };

    /// Takes the clients of a fresh server through it.
    ///
    /// # Errors
    ///
    /// When the server cannot be started, loses a connection or answers wrongly, or the system does
    /// not say what it uses.
    pub fn run(&self, engine: Engine, allocator: Allocator) -> Result<IdleRun> {
        let options = Options { engine, budget: None, send_buffer: None };
        let server = Server::start(allocator.command(PROGRAM, "serve", &options)?)?;
        let process = server.id();
        let begin = Instant::now();
        let sampler = Sampler::start(process, begin)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut steps = Steps { process, begin, payload: Payload::new(), phases: Vec::new() };
        let asked = runtime.block_on(steps.follow(self, &server));
        let (before, busy, idle, after) = asked?;
        let samples = sampler.finish();
        let seen = samples.iter().map(|sample| sample.bytes).max().unwrap_or_default();
        Ok(IdleRun {
            engine,
            allocator,
            before,
            // The system's own mark may be a few pages behind.
            peak: system::peak(process).context("the server has ended")?.max(seen),
            idle,
            busy,
            after,
            phases: steps.phases,
            samples,
        })
    }
}

/// The phases of a run.
struct Steps {
    process: u32,
    begin: Instant,
    payload: Arc<Payload>,
    phases: Vec<Phase>,
}

impl Steps {
    async fn follow(&mut self, course: &Course, server: &Server) -> Result<(u64, Load, u64, Load)> {
        let clients = clients::connect(server.address, course.clients, None).await?;
        let (clients, _) = self.small("start", clients, course.warm).await?;
        tokio::time::sleep(SETTLE).await;
        let before = system::resident(self.process)?;
        let from = self.now();
        let Course { large_bytes: bytes, spread, pace, .. } = *course;
        let large = Large { bytes, spread, pace, slow: 0 };
        let (clients, _) = large.ask(clients, &self.payload).await.context("in the burst")?;
        self.end("burst", from);
        let (clients, busy) = self.small("small frames", clients, course.busy).await?;
        let from = self.now();
        tokio::time::sleep(course.silence).await;
        let idle = system::resident(self.process)?;
        self.end("silence", from);
        let (clients, after) = self.small("small frames", clients, course.after).await?;
        drop(clients);
        Ok((before, busy, idle, after))
    }

    /// Small frames for that long.
    async fn small(
        &mut self,
        name: &str,
        clients: Vec<Client>,
        time: Duration,
    ) -> Result<(Vec<Client>, Load)> {
        let from = self.now();
        let (start, worked) = (Instant::now(), system::processor_time(self.process)?);
        let asked = clients::ask_small(clients, &self.payload, time).await;
        let (clients, requests) =
            asked.with_context(|| format!("with small frames, {from} ms after the start"))?;
        let worked = system::processor_time(self.process)?.saturating_sub(worked);
        let seconds = start.elapsed().as_secs_f64();
        self.end(name, from);
        Ok((clients, Load { requests, seconds, processor_seconds: worked.as_secs_f64() }))
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_millis() as u64
    }

    fn end(&mut self, name: &str, from: u64) {
        self.phases.push(Phase { name: name.to_owned(), from, to: self.now() });
    }
}
