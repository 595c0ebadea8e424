//! What the proxy has done, and what it holds at the moment.

use core::fmt;
use core::ops::AddAssign;

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
    /// Connections that never were passed on: the upstream refused, or the system had no file or memory.
    pub failed: u64,
    /// Bytes written to the upstream.
    pub bytes_up: u64,
    /// Bytes written to clients.
    pub bytes_down: u64,
    /// How often a direction waited because the pool was exhausted.
    pub waits: u64,
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

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.broken += other.broken;
        self.idle += other.idle;
        self.stopped += other.stopped;
        self.failed += other.failed;
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.waits += other.waits;
        self.acquired += other.acquired;
        self.reused += other.reused;
        self.fallbacks += other.fallbacks;
    }
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
            "buffers      {} acquired, {} of them from memory already held, {} from the fallback; waited for {} times",
            self.acquired, self.reused, self.fallbacks, self.waits
        )
    }
}

/// What a running proxy holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Connections that are open.
    pub connections: usize,
    /// Buffers that are out of their pools; of rings, those with bytes in them.
    pub in_use: usize,
    /// Bytes of these; of rings, bytes in them.
    pub in_use_bytes: usize,
    /// Bytes that the pools hold, or the rings are.
    pub reserved_bytes: usize,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "status: {} connections, {} buffers in use, {} bytes in use, {} bytes reserved",
            self.connections, self.in_use, self.in_use_bytes, self.reserved_bytes
        )
    }
}
