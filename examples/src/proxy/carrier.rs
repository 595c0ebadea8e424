//! How bytes get from one socket to the other: by buffers of a pool, or through a ring.

use core::cell::Cell;

use bufcore::PoolStats;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::Instant;

/// What carries the bytes of all connections of a worker.
pub(super) trait Carrier: 'static {
    /// Carries bytes until `from` ends.
    async fn carry(
        &self,
        from: &mut ReadHalf<'_>,
        to: &mut WriteHalf<'_>,
        progress: &Progress,
    ) -> Result<(), Failure>;

    /// What it holds, and has done.
    fn stats(&self) -> PoolStats;

    /// How often somebody had to wait for memory.
    fn waits(&self) -> u64;
}

/// Why a direction ended before its sender was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The sender is gone, or there is no memory for what it sends.
    Read,
    /// The receiver takes no more. What it sent before may still be on its way.
    Write,
}

/// How far one direction has come.
#[derive(Debug)]
pub(super) struct Progress {
    written: Cell<u64>,
    active: Cell<Instant>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { written: Cell::new(0), active: Cell::new(Instant::now()) }
    }

    /// Bytes came.
    pub(super) fn read(&self) {
        self.active.set(Instant::now());
    }

    /// So many bytes were passed on.
    pub(super) fn wrote(&self, bytes: usize) {
        self.written.set(self.written.get() + bytes as u64);
        self.active.set(Instant::now());
    }

    pub(super) fn written(&self) -> u64 {
        self.written.get()
    }

    /// When a byte last moved.
    pub(super) fn active(&self) -> Instant {
        self.active.get()
    }
}
