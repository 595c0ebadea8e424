//! Tests that look inside: invariant walks, and models of what threads may do to each other.

#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub(crate) use buftest::models::ends::memory_goes;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod walk;
