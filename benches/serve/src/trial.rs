//! One run: what the system says of the program before, in and after the traffic.

use core::time::Duration;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use buftrials::run;
use buftrials::system::{self, Usage};
use buftrials::watch::Server;
use serde::{Deserialize, Serialize};

use crate::clients;
use crate::work::{Amount, Cell, PROGRAM, Work};

/// A server that has accepted its connections is left alone this long before its memory is looked at.
const SETTLE: Duration = Duration::from_millis(100);

/// What a program used. Memory is resident, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// From the first request until after the silence.
    pub used: Usage,
    /// With all connections, before the first request.
    pub before: u64,
    /// The most that it ever had.
    pub peak: u64,
    /// After the silence.
    pub after: u64,
    /// After as long a silence without connections, where they were open until then.
    pub closed: u64,
    /// Bytes of all buffers that it asked for.
    pub asked: u64,
    /// Requests, messages or frames of its clients.
    pub messages: u64,
    /// Bytes of the pages that have buffers which were not dropped.
    pub held: u64,
    /// Whether it was in a container.
    pub contained: bool,
    /// Whether the system killed it.
    pub killed: bool,
}

/// A figure of a run.
pub type Figure = fn(&Measured) -> f64;

impl Measured {
    /// The growth to the peak, in bytes.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.peak.saturating_sub(self.before) as f64
    }

    /// What was kept after the silence, in bytes.
    #[must_use]
    pub fn kept(&self) -> f64 {
        self.after.saturating_sub(self.before) as f64
    }
}

impl Cell {
    /// Runs its program in a fresh process.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, loses a connection or answers wrongly, or the system does not say what it uses.
    pub fn measure(self, amount: Amount) -> Result<Measured> {
        if let Work::Burst { .. } = self.work {
            return run::answer(&mut self.allocator.command(PROGRAM, "burst", &(self, amount))?);
        }
        let mut command = self.allocator.command(PROGRAM, "server", &self)?;
        let container = Some(container()).filter(|_| self.work == Work::Container);
        let container = container.filter(works);
        let contained = container.is_some();
        if let Some(mut container) = container {
            container.arg(command.get_program()).args(command.get_args());
            command = container;
        }
        let mut server = Server::start(command)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let measured = runtime.block_on(self.watch(amount, &server));
        let killed = contained && server.ended()?.is_some();
        match measured {
            Err(_) if killed => Ok(Measured { contained, killed, ..Measured::default() }),
            measured => Ok(Measured { contained, ..measured? }),
        }
    }

    async fn watch(self, amount: Amount, server: &Server) -> Result<Measured> {
        let id = server.id();
        let count = match self.work {
            Work::Stock(stock) => stock.connections(&amount),
            work => work.framework().map_or(amount.relay_connections, |one| one.connections(&amount)),
        };
        let streams = clients::connect(server.address, count, self.work.socket_bytes()).await?;
        tokio::time::sleep(SETTLE).await;
        let (before, used) = (system::resident(id)?, system::usage(id)?);
        let mut open = Vec::new();
        let (asked, messages) = match self.work {
            Work::Relay { bytes, .. } => {
                let frames = amount.frames(bytes);
                clients::relay(streams, bytes, frames).await?;
                (count * frames * bytes, count * frames)
            }
            Work::Stock(stock) => {
                let sizes = stock.sizes(&amount);
                let sent = (count * sizes.iter().sum::<usize>(), count * sizes.len());
                open = stock.drive(streams, sizes).await?;
                sent
            }
            work => {
                let framework = work.framework().context("neither a server nor a burst")?;
                let sizes = framework.sizes(&amount);
                let asked = (sizes.iter().sum(), sizes.len());
                clients::ask(framework, streams, sizes).await?;
                asked
            }
        };
        let peak = system::peak(id)?;
        tokio::time::sleep(amount.silence).await;
        let (after, used) = (system::resident(id)?, system::usage(id)?.since(&used));
        let mut closed = 0;
        if !open.is_empty() {
            drop(open);
            tokio::time::sleep(amount.silence).await;
            closed = system::resident(id)?;
        }
        let (asked, messages) = (asked as u64, messages as u64);
        Ok(Measured { used, before, peak, after, closed, asked, messages, ..Measured::default() })
    }
}

/// What runs a program in a container of 64 MiB, where systemd does so for this user.
fn container() -> Command {
    let mut command = Command::new("systemd-run");
    command.args(["--user", "--scope", "--quiet", "--property=MemoryMax=64M", "--property=MemorySwapMax=0"]);
    command.arg("--");
    command
}

/// Whether it can run a program.
fn works(container: &Command) -> bool {
    let mut command = Command::new(container.get_program());
    command.args(container.get_args()).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
