//! No pool would help; chosen by bufadvise 0.1.0 for the trace app.

/// The strategy with its settings, as `bufadvise check` reads them.
pub const SETTINGS: &str = "vec";

/// Makes a buffer: no pool would help.
pub fn buffer(bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes)
}
