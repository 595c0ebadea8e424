//! Tests of the allocator, in a program that has it as its global one.

#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one promise is behind all of a block")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod blocks;
mod costs;
mod model;
#[cfg(all(target_os = "linux", not(miri)))]
mod system;
mod threads;

use bufalloc::Large;

#[global_allocator]
static ALLOC: Large = Large::new();

/// Whether the system has addresses to reserve.
const HAS_HEAP: bool = cfg!(all(any(unix, windows), not(miri)));
