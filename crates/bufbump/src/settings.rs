//! The settings of a pool, as they were checked.

use bufcore::size;

use crate::shard::HEADER_BYTES;

/// Settings that have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The largest request that a shard serves.
    pub(crate) shard_bytes: usize,
    pub(crate) max_probes: usize,
    /// Idle shards that the pool keeps.
    pub(crate) idle_shards: usize,
    /// Spare shards that a thread keeps.
    pub(crate) spare_shards: usize,
    /// A power of two, at least `LEAST_ALIGNMENT`.
    pub(crate) alignment: usize,
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    pub(crate) wipe: bool,
}

impl Settings {
    /// The largest request that can ever succeed.
    pub(crate) fn max_capacity(&self) -> usize {
        // Room for a header, to round up, and to align the start.
        // In 32 bits the largest alignment leaves nothing.
        (size::MAX_BYTES - HEADER_BYTES).saturating_sub(3 * self.alignment.max(HEADER_BYTES))
    }
}
