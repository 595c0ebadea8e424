//! For authors of pools: the parts of this crate that `bufkit` and pools need, and programs do not.
//!
//! - A [`RefCount`] is the count that each [`Lease`](crate::Lease) returns, and a [`TaggedPtr`] is
//!   a lease of one word; [`tagged_lease`](crate::tagged_lease) makes one.
//! - [`Counters`] and [`Released`] count what [`PoolStats`](crate::PoolStats) shows. A [`Tracker`]
//!   lists the buffers in use.
//! - [`Growth`] plans the sizes of a buffer that grows.
//! - The functions are those of which a program should have one copy: copies that avoid 4K
//!   aliasing, a search, a wipe, fallible allocations, caught panics.

pub use crate::buf::split::empty_buf;
#[cfg(feature = "std")]
pub use crate::interop::{count_filled, count_read, count_written};
pub use crate::lease::guard::is_alone;
pub use crate::lease::ref_count::RefCount;
pub use crate::lease::tagged_ptr::TaggedPtr;
pub use crate::lease::track::Tracker;
#[cfg(feature = "wipe")]
pub use crate::lease::wipe::wipe;
pub use crate::memory::aliasing::copy_bytes;
#[cfg(feature = "alloc")]
pub use crate::memory::try_box::try_box;
pub use crate::pool::config::{check_alignment, check_setting};
pub use crate::pool::growth::Growth;
pub use crate::pool::stats::{Counters, Released, Served};
pub use crate::stream::pieces::find_byte;
#[cfg(feature = "alloc")]
pub use crate::unwind::catch_user_panic;

/// Atomics and locks: The atomics of `core` and `std`, of `portable-atomic` with that feature, or
/// of a model checker under `--cfg loom` or `--cfg shuttle`.
pub mod sync {
    pub use crate::sync::*;
}
