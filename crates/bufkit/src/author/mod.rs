//! What gives each pool the same methods, and prints the settings of each builder.

pub(crate) mod methods;
mod settings;
pub(crate) mod settings_text;
