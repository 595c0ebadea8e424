//! `advise` and `check`: replay a recorded trace on every strategy, with a small sweep of settings
//! each.
//!
//! - `analysis`, `context`, `measuring`: what is asked for, and from there to the answer.
//! - `traffic`, `candidate`, `strategies`: what the trace asks, and which strategies are tried with
//!   which settings.
//! - `replay_exact`: what each refuses and how much memory it takes, in the recorded order.
//! - `thread_split`, `schedule`, `replay_timed`: the replay that is timed. `source`, `page_touch`:
//!   what both replays ask, and write.
//! - `tournament`, `child`, `traffic_pipe`: which candidates are timed how often, in which
//!   processes. `entry`: what is found of each.
//! - `per_site`, `render_sites`: the same for the largest call sites of a heap recording.
//! - `memory_timeline`, `memory_chart`: memory over time, now and with the choice.
//! - `choice`: the rule. `record`, `render_text`, `table`, `scatter`, `page`: the advice.
//!   `codegen`: the choice for a program.
//! - `check`: whether settings still fit a trace.

mod analysis;
mod candidate;
mod check;
mod child;
mod choice;
mod codegen;
mod context;
mod entry;
mod measuring;
mod memory_chart;
mod memory_timeline;
mod page;
mod page_touch;
mod per_site;
mod record;
mod render_sites;
mod render_text;
mod replay_exact;
mod replay_timed;
mod scatter;
mod schedule;
mod source;
mod strategies;
mod table;
mod thread_split;
mod tournament;
mod traffic;
mod traffic_pipe;

pub(crate) use check::Options as CheckOptions;
pub(crate) use child::Job;
#[cfg(target_os = "linux")]
pub(crate) use context::Context;
pub(crate) use context::Options;
