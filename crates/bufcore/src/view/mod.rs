//! Views: bytes that are read, and shared.

pub(crate) mod frozen;
mod methods;
pub(crate) mod shared;
