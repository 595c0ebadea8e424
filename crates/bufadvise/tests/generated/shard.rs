//! A pool.

// bufworks = { git = "https://github.com/bufworks/bufworks", default-features = false, features = ["std", "shard"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "shard:shard_buffers=115,thread_cache=4";

/// Builds the pool: all threads share it, each has a clone.
pub fn pool() -> Result<bufworks::shard::ShardPool, bufworks::ConfigError> {
    bufworks::shard::ShardPool::builder().shard_buffers(115).thread_cache(4).build()
}
