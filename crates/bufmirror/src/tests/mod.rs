//! Tests that look inside: models of what threads may do to each other.

#[cfg(loom)]
mod loom;
pub(crate) mod parking;
#[cfg(shuttle)]
mod shuttle;
