//! How bytes get from one socket to the other: by buffers of a pool, or through a ring.

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use bufcore::PoolStats;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

/// What carries the bytes of all connections of a worker.
pub(super) trait Carrier: 'static {
    /// Carries bytes until `from` ends, and then that end.
    async fn carry(
        &self,
        from: OwnedReadHalf,
        to: OwnedWriteHalf,
        progress: &Arc<Progress>,
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
    began: Instant,
    /// When a byte last moved, in milliseconds since it began.
    active_ms: AtomicU64,
    written: AtomicU64,
}

impl Progress {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), active_ms: AtomicU64::new(0), written: AtomicU64::new(0) })
    }

    /// Bytes came.
    pub(super) fn read(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // ORDER: Relaxed: a time to compare; nothing else is read because of it.
        self.active_ms.fetch_max(now, Ordering::Relaxed);
    }

    /// This number of bytes was passed on.
    pub(super) fn wrote(&self, bytes: usize) {
        // ORDER: Relaxed: a number; who writes has ended before it is reported.
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read();
    }

    pub(super) fn written(&self) -> u64 {
        // ORDER: Relaxed, as in `wrote`.
        self.written.load(Ordering::Relaxed)
    }

    /// When a byte last moved.
    pub(super) fn active(&self) -> Instant {
        // ORDER: Relaxed, as in `read`.
        self.began + Duration::from_millis(self.active_ms.load(Ordering::Relaxed))
    }
}
