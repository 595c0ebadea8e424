//! A pool.

// bufworks = { version = "0.1.0", default-features = false, features = ["std", "slot"] }

/// The strategy with its settings, as `AnyBuilder` reads them.
pub const SETTINGS: &str = "bounded-slot:slots=9";

/// Builds the pool.
pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {
    Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)
}
