//! Chosen by bufadvise 0.1.0 for the trace app.

/// The strategy with its settings, as `bufadvise check` reads them.
pub const SETTINGS: &str = "ring:capacity=1500000,buffers=9";
/// The setting `buffers`.
pub const BUFFERS: usize = 9;
/// The setting `capacity`.
pub const CAPACITY: usize = 1_500_000;

/// Builds the pool. Each thread that acquires has one; its buffers may be dropped on any thread.
pub fn pool() -> Result<bufworks::ring::RingPool, bufworks::ConfigError> {
    bufworks::ring::RingPool::builder().buffers(BUFFERS).capacity(CAPACITY).build()
}
