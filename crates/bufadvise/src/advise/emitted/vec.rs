//! No pool would help; chosen by bufadvise 0.1.0 for the trace app.

/// The strategy, as `bufadvise check` reads it.
pub const STRATEGY: &str = "vec";

/// Makes a buffer: no pool would help.
pub fn buffer(bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes)
}
