//! Programs that users know, over pools and over what programs use without one.
//!
//! Each program is a process of its own over one allocator, so that its memory and its processor time are its own. The process that
//! starts it has the clients, which know what each answer has to be.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`work`] | the programs, how much they do, and where their buffers come from |
//! | [`service`] | the upload and download service over axum, hyper and tonic |
//! | [`server`] | the process of a server, and the relay |
//! | [`stock`] | servers without a pool, and their clients |
//! | [`burst`] | a burst of buffers |
//! | [`clients`] | the clients of the servers |
//! | [`pattern`] | bytes that both know |
//! | [`trial`] | one run: what the system says of the program before, in and after the traffic |
//! | [`plan`], [`command`] | which runs there are, and the command line |
//! | [`marks`], [`report`] | what has to hold of the results; tables and a chart |
//!
//! `docs/benchmarking.md` describes the method. `cargo xtask serve` runs it.
#![cfg(all(target_os = "linux", feature = "service"))]
#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

pub mod burst;
pub mod clients;
pub mod command;
pub mod marks;
pub mod pattern;
pub mod plan;
pub mod report;
pub mod server;
pub mod service;
pub mod stock;
pub mod trial;
pub mod work;

pub use command::main;
