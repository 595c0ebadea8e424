//! Tests that look inside: models of what threads may do to each other.

#[cfg(loom)]
pub(crate) mod loom;
#[cfg(shuttle)]
mod shuttle;
