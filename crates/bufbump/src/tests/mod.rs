//! Tests that look inside: walks over random programs that check the invariants, and models of what threads may do to each other.

#[cfg(loom)]
pub(crate) mod loom;
#[cfg(loom)]
mod stack;
#[cfg(not(loom))]
mod walk;
