//! Stopping a running proxy, and asking what it holds.

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::Status;
use super::worker::Job;

/// A handle to a proxy that runs, or will.
#[derive(Debug, Default)]
pub struct Control {
    pub(super) stopping: CancellationToken,
    workers: Mutex<Vec<UnboundedSender<Job>>>,
}

impl Control {
    /// For one proxy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts no more connections, and ends those that go on longer than the grace.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// What the proxy holds now. Its workers are asked in turn, each between two of its tasks; blocks until the last has answered.
    #[must_use]
    pub fn status(&self) -> Status {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all = Status::default();
        for worker in workers {
            let (reply, answer) = mpsc::channel();
            // A worker that has ended holds nothing.
            drop(worker.send(Job::Status(reply)));
            if let Ok(status) = answer.recv() {
                all.connections += status.connections;
                all.in_use += status.in_use;
                all.in_use_bytes += status.in_use_bytes;
                all.reserved_bytes += status.reserved_bytes;
            }
        }
        all
    }

    /// Whom to ask from now on.
    pub(super) fn set_workers(&self, workers: Vec<UnboundedSender<Job>>) {
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers;
    }
}
