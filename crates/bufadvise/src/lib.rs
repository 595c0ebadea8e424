//! All that the program `bufadvise` does: it says whether a buffer pool would help a program, which
//! one, and with which settings.
//!
//! A trace of the program's requests, which [`buftrace`] records, is replayed on every strategy of
//! [`bufworks`], with settings that follow from the trace. Recordings of a heap become such traces.
//! The README has the commands. This library promises [`run`] and nothing else.
//!
//! ```
//! // Prints the version, as `bufadvise --version` does.
//! let done = bufadvise::run(["bufadvise".into(), "--version".into()]);
//! assert_eq!(done, std::process::ExitCode::SUCCESS);
//! ```
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

mod advise;
mod call_sites;
mod command;
mod input;
// What the workspace's benchmarks need too. It is no part of what this library promises.
#[doc(hidden)]
pub mod measure;
mod names;
#[doc(hidden)]
pub mod number;
mod print;
#[cfg(target_os = "linux")]
mod recording;
mod retention;
mod show;

pub use command::run;
