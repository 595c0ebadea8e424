//! What gives each pool the same methods, and prints the settings of each builder.

pub(crate) mod methods;
pub(crate) mod settings_text;
