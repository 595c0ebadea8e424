//! A pool.

// bufworks = { git = "https://github.com/bufworks/bufworks", default-features = false, features = ["std", "bump"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "bump:shard_size=64KiB,max_idle_bytes=3MiB";

/// Builds the pool: all threads share it, each has a clone.
pub fn pool() -> Result<bufworks::bump::BumpPool, bufworks::ConfigError> {
    bufworks::bump::BumpPool::builder().max_idle_bytes(3145728).shard_size(65536).build()
}
