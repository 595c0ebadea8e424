//! A pool.

// bufworks = { git = "https://github.com/bufworks/bufworks", default-features = false, features = ["std", "slot"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "slot:capacity=64KiB,slots=16";

/// Builds the pool: one for each thread that acquires. Buffers may be dropped on any thread.
pub fn pool() -> Result<bufworks::slot::SlotPool, bufworks::ConfigError> {
    bufworks::slot::SlotPool::builder().capacity(65536).slots(16).build()
}
