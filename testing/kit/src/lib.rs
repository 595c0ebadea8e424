//! The test kit of the workspace: what every strategy has to survive, written once.
//!
//! - [`conformance!`] stamps the whole suite out for one strategy. The trials themselves are in
//!   [`trials`].
//! - [`ops`] generates programs of operations, and [`lockstep`] runs them against a pool and the
//!   naive [`model`].
//! - [`thresholds`] has the sizes at which the implementations change what they do.
//! - [`bytes`] reads programs from what a fuzzer makes up.
//! - [`alloc`] has global allocators that fail on demand, keep a ledger, or call back.
//! - `models` is for the models, and only there with `--cfg loom` or `--cfg shuttle`.
//! - [`races`] is what ThreadSanitizer runs.
//! - [`stress`] runs long programs under load.
//! - [`identities`] has the sums that statistics have to keep.
//! - [`source`] lends memory to regions, refuses it, and panics.
//! - [`process`] runs a test in a process of its own and reads what the kernel says about it.
//! - [`words`] checks what errors say.
//! - `sandbox` makes the system refuse calls, send signals, and fork. [`errands`] is a thread that
//!   does what it is told.
//! - [`tasks`] polls futures by hand.
//!
//! How to use it: `docs/testing.md`. `cargo xtask broken --list` prints the mutant that each trial
//! catches.

#![allow(missing_debug_implementations, reason = "tests print what they compare, and nothing else")]
#![allow(
    clippy::alloc_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]
#![allow(clippy::missing_panics_doc, reason = "everything here is a test: it panics to fail")]

pub mod alloc;
pub mod append;
pub mod bounds;
pub mod bytes;
pub mod conformance;
pub mod errands;
pub mod hostile;
pub mod identities;
pub mod lockstep;
pub mod model;
#[cfg(any(loom, shuttle))]
pub mod models;
pub mod ops;
mod parcel;
pub mod pattern;
pub mod process;
pub mod races;
#[cfg(unix)]
pub mod sandbox;
#[cfg(target_os = "linux")]
pub mod secret;
pub mod source;
pub mod stress;
pub mod tasks;
pub mod thresholds;
pub mod trials;
pub mod wakers;
pub mod words;

pub use bufcore;
pub use conformance::Kit;
