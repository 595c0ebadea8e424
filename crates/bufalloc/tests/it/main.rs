//! Tests of the allocator, in a program that has it as its global one.

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
