//! Tests that look inside: walks over random programs that check the invariants, and models of what
//! threads may do to each other.

#[cfg(loom)]
mod biased;
#[cfg(loom)]
mod large;
#[cfg(loom)]
pub(crate) mod loom;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(any(loom, shuttle)))]
mod walk;
