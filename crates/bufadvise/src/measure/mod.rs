//! The tools that every measurement of buffers needs, in this program and in the workspace's
//! benchmarks.
//!
//! - `block`: a buffer whoever made it.
//! - `place`, `process`, `host`: where a thread runs; this process and this machine as the system
//!   sees them.
//! - `statistics`: numbers that stand for many.

pub mod block;
pub mod host;
pub mod place;
pub mod process;
pub mod statistics;
