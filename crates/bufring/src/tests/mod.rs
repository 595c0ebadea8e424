//! Tests that look inside: invariant walks, and models of what threads may do to each other.

#[cfg(not(loom))]
mod invariants;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod walk;
