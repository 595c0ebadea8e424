//! Small real programs over the bufworks buffer pools. The programs are in `src/bin`; what can be tested without them is here.

pub mod bodies;
pub mod columns;
pub mod datagrams;
pub mod limits;
pub mod proxy;
pub mod ranges;
pub mod relay;

/// The examples of the workspace's README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
