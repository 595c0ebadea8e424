//! What the proxy has done.

use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bufcore::PoolStats;

/// Counts of one run of the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Connections that were passed on and have ended.
    pub connections: u64,
    /// Of those, ended by an error on either socket.
    pub broken: u64,
    /// Of those, ended because nothing came for too long.
    pub idle: u64,
    /// Of those, ended because the proxy stopped.
    pub stopped: u64,
    /// Connections that never were passed on: the upstream refused, or the system had no thread or memory.
    pub failed: u64,
    /// Bytes written to the upstream.
    pub bytes_up: u64,
    /// Bytes written to clients.
    pub bytes_down: u64,
    /// Buffers acquired from all pools.
    pub acquired: u64,
    /// Of those, from memory that a pool held.
    pub reused: u64,
    /// Of those, from a pool's fallback.
    pub fallbacks: u64,
}

impl Report {
    /// Adds what one pool has done.
    pub(super) fn add_pool(&mut self, stats: &PoolStats) {
        self.acquired += stats.acquired;
        self.reused += stats.reused;
        self.fallbacks += stats.fallbacks;
    }
}

pub(super) fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    // Numbers stay numbers, whoever panicked.
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "connections  {} ({} broken, {} idle, {} stopped; {} more failed)",
            self.connections, self.broken, self.idle, self.stopped, self.failed
        )?;
        writeln!(f, "bytes        {} up, {} down", self.bytes_up, self.bytes_down)?;
        write!(
            f,
            "buffers      {} acquired, {} of them from memory already held, {} from the fallback",
            self.acquired, self.reused, self.fallbacks
        )
    }
}
