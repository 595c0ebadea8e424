//! No pool would help; chosen by bufadvise 0.1.0 for the trace app.

/// The strategy with its settings, as `bufadvise check` reads them.
pub const SETTINGS: &str = "heap:alignment=4KiB";

/// Builds the pool.
pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {
    Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)
}
