//! Chosen by bufadvise 0.1.0 for the trace app.

/// The strategy with its settings, as `bufadvise check` reads them.
pub const SETTINGS: &str = "bump:shard_size=64KiB,max_idle_bytes=3MiB";
/// The setting `max_idle_bytes`.
pub const MAX_IDLE_BYTES: usize = 3_145_728;
/// The setting `shard_size`.
pub const SHARD_SIZE: usize = 65_536;

/// Builds the pool. All threads share it: each has a clone.
pub fn pool() -> Result<bufworks::bump::BumpPool, bufworks::ConfigError> {
    bufworks::bump::BumpPool::builder().max_idle_bytes(MAX_IDLE_BYTES).shard_size(SHARD_SIZE).build()
}
