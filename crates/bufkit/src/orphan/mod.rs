//! Memory that outlived its pool.
//!
//! Some strategies release with a plain store. Such a store cannot know whether it is the last one
//! of a dropped pool: two threads that only load and store cannot agree on which of them is last. A
//! pool that is dropped with live buffers therefore marks and counts them. It moves its memory to a
//! list here ([`defer_free`]). A release that reads the mark counts itself ([`release_orphaned`]).
//! The last one frees the memory, in constant time, however long the list is.
//!
//! One release is not counted: a thread that was preempted between reading "pool alive" and storing
//! "free", while another thread dropped the pool. A later check finds it. One of the last late
//! releases of the same pool makes this check. Later drops of pools check a bounded part of the
//! list each, and [`sweep`] checks all of it.

#[cfg(feature = "alloc")]
mod handover;
#[cfg(feature = "alloc")]
mod head;
#[cfg(feature = "alloc")]
mod list;
#[cfg(feature = "alloc")]
mod sweeper;

#[cfg(feature = "alloc")]
pub use self::handover::{defer_free, release_orphaned};
#[cfg(feature = "alloc")]
pub use self::head::{Methods, Orphan};
#[cfg(feature = "alloc")]
pub use self::sweeper::{pending, sweep};

/// Frees blocks whose buffers have all been released. Without `alloc` there are none.
#[cfg(not(feature = "alloc"))]
pub fn sweep() {}
