//! Views: bytes that are read, and shared.

pub(crate) mod frozen;
pub(crate) mod shared;
