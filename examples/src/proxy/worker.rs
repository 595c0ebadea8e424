//! One thread of the proxy: a runtime, and the connections that were given to it.

extern crate alloc;

use alloc::rc::Rc;
use core::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::sync::mpsc::Sender;

use bufcore::PoolStats;
use tokio::runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinSet, LocalSet};
use tokio_util::sync::CancellationToken;

use super::carrier::Carrier;
use super::{Report, Settings, Status};

/// What a worker is asked to do.
#[derive(Debug)]
pub(super) enum Job {
    /// Pass this client on.
    Connect(TcpStream),
    /// Say what it holds.
    Status(Sender<Status>),
    /// There will be no more clients: end with the last of them.
    Finish,
}

/// What the connections of a worker share.
pub(super) struct Shared<C> {
    pub(super) up: C,
    pub(super) down: C,
    pub(super) settings: Settings,
    /// Cancelled when the connections have to end.
    pub(super) over: CancellationToken,
    pub(super) report: RefCell<Report>,
}

/// Does its jobs to the end. Returns what was done, and what the pools say.
pub(super) fn run<C: Carrier>(
    up: C,
    down: C,
    settings: &Settings,
    stopping: CancellationToken,
    mut jobs: UnboundedReceiver<Job>,
    counts_pools: bool,
) -> io::Result<(Report, (PoolStats, PoolStats))> {
    let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let over = CancellationToken::new();
    let shared = Rc::new(Shared {
        up,
        down,
        settings: settings.clone(),
        over: over.clone(),
        report: RefCell::default(),
    });
    let grace = settings.grace;
    LocalSet::new().block_on(&runtime, async {
        let mut connections = JoinSet::new();
        let give_up = tokio::task::spawn_local(async move {
            stopping.cancelled().await;
            tokio::time::sleep(grace).await;
            over.cancel();
        });
        let mut is_finishing = false;
        while !is_finishing || !connections.is_empty() {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(Job::Connect(client)) => {
                        connections.spawn_local(Rc::clone(&shared).pass_on(client));
                    }
                    // The caller who asked may have gone.
                    Some(Job::Status(reply)) => drop(reply.send(shared.status(connections.len(), counts_pools))),
                    Some(Job::Finish) | None => is_finishing = true,
                },
                Some(ended) = connections.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        std::panic::resume_unwind(error.into_panic());
                    }
                }
            }
        }
        give_up.abort();
    });
    let mut report = *shared.report.borrow();
    report.waits = shared.up.waits() + shared.down.waits();
    Ok((report, (shared.up.stats(), shared.down.stats())))
}

impl<C: Carrier> Shared<C> {
    fn status(&self, connections: usize, counts_pools: bool) -> Status {
        if !counts_pools {
            return Status { connections, ..Status::default() };
        }
        let (up, down) = (self.up.stats(), self.down.stats());
        Status {
            connections,
            in_use: up.in_use + down.in_use,
            in_use_bytes: up.in_use_bytes + down.in_use_bytes,
            reserved_bytes: up.reserved_bytes + down.reserved_bytes,
        }
    }
}
