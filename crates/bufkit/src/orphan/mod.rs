//! Memory that outlived its pool.
//!
//! Some strategies release with a plain store. It cannot tell whether it was the last one of a pool
//! that has ended. Two threads that only load and store cannot agree on which of them is last. So
//! the pool, when it is dropped with buffers out, marks and counts them. It gives its memory to a
//! list here ([`defer_free`]). A release that sees the mark counts
//! itself ([`release_orphaned`]). The last one frees the memory, in constant
//! time, however long the list is.
//!
//! One release is not counted: the scheduler stopped it between reading "pool alive" and storing
//! "free", and the pool was dropped on another thread at that moment. A later look finds it. One of
//! the last late releases of the same pool looks. Later ends of pools look at a bounded part of the
//! list each, and [`sweep`] looks at all of it.

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

/// Frees blocks of which nothing is out any more. Without `alloc` there are none.
#[cfg(not(feature = "alloc"))]
pub fn sweep() {}
