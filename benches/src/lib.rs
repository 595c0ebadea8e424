//! The benchmark matrix: workloads by engines, each cell checked for right bytes before it is
//! timed.
//!
//! - A *case* ([`Case`]) is a workload with its parameters: a row.
//! - A *engine* ([`Engine`]) is a strategy, a control or a peer: a column. One file in
//!   `adapters/`.
//! - A *cell* ([`Cell`]) is an engine set up for a case. The workloads in `workloads/` build it,
//!   generic over the engine's pool, so that a timed loop has no indirect call in it.
//! - A *group* is a row in a process of its own: its engines take turns, so that what disturbs
//!   the machine disturbs all.
//!
//! | module | what is in it | imports from |
//! | --- | --- | --- |
//! | [`harness`] | rows, columns, cells; measuring, child processes, records | |
//! | [`workloads`] | what engines are put to | `harness` |
//! | [`adapters`] | the engines: strategies, controls, peers | `harness`, `workloads` |
//! | [`report`] | the sections of the report, and its charts | `harness`, `workloads` |
//! | [`cliffs`] | the search for traffic in which a strategy is slow | all of these but `report` |
//! | [`select`] | which rows and columns a command line means | `harness`, `workloads`, `adapters` |
//!
//! The method is described in `docs/benchmarking.md`. `cargo xtask bench` runs it.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod adapters;
pub mod cliffs;
pub mod harness;
pub mod report;
pub mod select;
pub mod workloads;

pub use harness::{Case, Cell, Engine, Kind, Unsupported};
