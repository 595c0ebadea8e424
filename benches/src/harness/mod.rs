//! The harness: rows, columns and cells, how they are measured, in which processes, and what is
//! kept of it.
//!
//! - `block`, `plan`, `serve`: what a contestant is asked for, and implements.
//! - `case`, `contestant`, `cell`: a row, a column, and the two together.
//! - `check`, `measure`, `statistics`: right bytes first, then times.
//! - `place`, `crew`, `courier`: threads.
//! - `parent`, `child`, `process`: a process for each row. `record`, `host`: what it found, and
//!   where.
//!
//! It names no workload and no contestant.

pub mod block;
pub mod case;
pub mod cell;
pub(crate) mod check;
pub mod child;
pub mod contestant;
pub(crate) mod courier;
pub(crate) mod crew;
pub(crate) mod host;
pub mod measure;
pub mod parent;
pub(crate) mod place;
pub mod plan;
pub mod process;
pub mod record;
pub mod serve;
pub mod statistics;

pub use case::Case;
pub use cell::Cell;
pub use contestant::{Contestant, Kind};
pub use plan::Unsupported;
