//! A reader of large files: what a buffer costs where it comes from, for reads past the page cache and
//! out of it.
//!
//! Each cell runs in a process of its own, which says what it measured in a line of JSON.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`engine`] | where buffers come from, and the rows that each takes part in |
//! | [`foreign`] | buffers over memory of others: vectors, and zeropool's |
//! | [`mod@file`] | the file of tensors, and its checksums |
//! | [`cell`] | one cell: its axes, and what it measured |
//! | [`trial`], [`work`] | how a cell is run: pools and threads; reads and checks |
//! | [`plan`], [`command`] | which cells run, and the command line |
//! | [`marks`], [`report`] | what has to hold; tables, the chart |
//!
//! `docs/benchmarking.md` describes the method. `cargo xtask reader` runs it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod cell;
pub mod command;
pub mod engine;
pub mod file;
pub mod foreign;
pub mod marks;
pub mod plan;
pub mod report;
pub mod trial;
pub mod work;

pub use command::main;
