//! No pool would help; chosen by bufadvise 0.1.0 for the trace app.

/// The strategy, as `bufadvise check` reads it.
pub const STRATEGY: &str = "heap";
/// The same with its settings.
pub const SETTINGS: &str = "heap:alignment=4KiB";

/// Builds the pool.
pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {
    Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)
}
