//! A pool.

// bufworks = { git = "https://github.com/bufworks/bufworks", default-features = false, features = ["std", "ring"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "ring:capacity=1500000,buffers=9";

/// Builds the pool: one for each thread that acquires. Buffers may be dropped on any thread.
pub fn pool() -> Result<bufworks::ring::RingPool, bufworks::ConfigError> {
    bufworks::ring::RingPool::builder().buffers(9).capacity(1500000).build()
}
