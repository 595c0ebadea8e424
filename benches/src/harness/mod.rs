//! The harness: rows, columns and cells, how they are measured, in which processes, and what is
//! kept of it.
//!
//! - `plan`, `serve`: what an engine is asked for, and implements.
//! - `case`, `engine`, `cell`: a row, a column, and the two together. `shape`: a row of any traffic.
//! - `check`, `measure`: right bytes first, then times.
//! - `crew`, `courier`: threads.
//! - `parent`, `child`: a process for each row. `record`: what it found, and how that
//!   compares.
//!
//! - `block`, `pattern`: what is done with bytes. `tail`: times of single operations.
//!
//! The parts that the adviser needs too are in its library (`bufadvise::measure`).
//!
//! It names no workload and no engine.

pub mod block;
pub mod case;
pub mod cell;
pub(crate) mod check;
pub mod child;
pub(crate) mod courier;
pub(crate) mod crew;
pub mod engine;
pub mod measure;
pub mod parent;
pub(crate) mod pattern;
pub mod plan;
pub mod record;
pub mod serve;
pub mod shape;
pub mod tail;

pub use bufadvise::measure::{place, process, statistics};
pub use case::Case;
pub use cell::Cell;
pub use engine::{Engine, Kind};
pub use plan::Unsupported;
