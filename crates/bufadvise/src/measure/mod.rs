//! The tools that every measurement of buffers needs, in this program and in the workspace's
//! benchmarks.
//!
//! - `block`, `pattern`: a buffer whoever made it, and bytes that tell one from another.
//! - `place`, `process`, `host`: where a thread runs; this process and this machine as the system
//!   sees them.
//! - `statistics`, `tail`: numbers that stand for many.

pub mod block;
pub mod host;
pub mod pattern;
pub mod place;
pub mod process;
pub mod statistics;
pub mod tail;
