//! The morning after: what a server keeps resident once a burst is over.
//!
//! The server is a process of its own, so that its resident memory is nobody else's. The process
//! that starts it has the clients, and looks at the server through `/proc`. There is a program for
//! each allocator; the first of them starts the others.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`engine`] | what servers have their buffers from, and the allocators |
//! | [`wire`] | the protocol |
//! | [`server`] | the servers |
//! | [`clients`] | what asks them |
//! | [`idle`], [`budget`] | the two trials |
//! | [`record`], [`marks`] | what they found, and what has to hold of it |
//! | [`report`] | tables, charts |
//! | [`plan`], [`command`] | which trials run, and the command line |
//!
//! `docs/benchmarking.md` describes the method. `cargo xtask idle` runs it.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod budget;
pub mod clients;
pub mod command;
pub mod engine;
pub mod idle;
pub mod marks;
pub mod plan;
pub mod record;
pub mod report;
pub mod server;
pub mod wire;

pub use command::main;
