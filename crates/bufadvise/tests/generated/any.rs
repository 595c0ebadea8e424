//! A pool.

// bufworks = { git = "https://github.com/bufworks/bufworks", default-features = false, features = ["std", "slot"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "bounded-slot:slots=9";

/// Builds the pool.
pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {
    Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)
}
