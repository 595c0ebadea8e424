//! The benchmark matrix: workloads by contestants, each cell checked for right bytes before it is timed.
//!
//! - A *case* ([`Case`]) is a workload with its parameters: a row.
//! - A *contestant* ([`Contestant`]) is a strategy, a control or a peer: a column. One file in `contestants/`.
//! - A *cell* ([`Cell`]) is a contestant set up for a case. The workloads in `workloads/` build it, generic over the
//!   contestant's pool, so that a timed loop has no indirect call in it.
//! - A *group* is a row in a process of its own: its contestants take turns, so that what disturbs the machine disturbs all.
//!
//! - [`advise`] replays a recorded trace and says which strategy fits it.
//!
//! The method is described in `docs/benchmarking.md`. `cargo xtask bench` runs it.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod advise;
pub mod block;
pub mod case;
pub mod cell;
mod check;
pub mod child;
pub mod contestant;
pub mod contestants;
pub mod counts;
mod courier;
mod crew;
mod host;
pub mod instructions;
pub mod measure;
pub mod parent;
mod place;
pub mod record;
pub mod report;
pub mod select;
pub mod workloads;

pub use case::Case;
pub use cell::Cell;
pub use contestant::{Contestant, Kind, Unsupported};
