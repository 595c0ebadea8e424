//! Chosen by bufadvise 0.1.0 for the trace app.

/// The strategy, as `bufadvise check` reads it.
pub const STRATEGY: &str = "ring";
/// The setting `buffers`.
pub const BUFFERS: usize = 9;
/// The setting `capacity`.
pub const CAPACITY: usize = 1_500_000;

/// Builds the pool. Each thread that acquires has one; its buffers may be dropped on any thread.
pub fn pool() -> Result<bufworks::ring::RingPool, bufworks::ConfigError> {
    bufworks::ring::RingPool::builder().buffers(BUFFERS).capacity(CAPACITY).build()
}
