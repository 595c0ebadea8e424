//! `advise`: replays a recording without a pool and with each strategy, and says whether a pool
//! would help.
//!
//! - `context`: the options, and from there to the answer.
//! - `traffic`, `candidate`, `strategies`: what the recording requests, and which strategies are
//!   tried with which settings.
//! - `schedule`, `replay`: one cold replay, in a process of its own (`child`).
//!   `source`, `page_touch`: what it requests, and writes. `wire`: the schedule on its way there.
//! - `children`: the processes, none of which outlives its time.
//! - `study`: which candidates are replayed how often. `verdict`: the rule.
//! - `answer`, `table`, `codegen`: the answer as text, as a table, as a program takes it in.

mod answer;
mod candidate;
mod child;
mod children;
mod codegen;
mod context;
mod page_touch;
mod replay;
mod schedule;
mod source;
mod strategies;
mod study;
mod table;
mod traffic;
mod verdict;
mod wire;

pub(crate) use child::Job;
#[cfg(target_os = "linux")]
pub(crate) use context::Context;
pub(crate) use context::Options;
