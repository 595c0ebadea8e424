//! The list of memory that outlived its pool; see [`crate::strategy::orphans`].

#[cfg(feature = "alloc")]
mod handover;
#[cfg(feature = "alloc")]
mod head;
#[cfg(feature = "alloc")]
mod list;
#[cfg(feature = "alloc")]
mod sweeper;

#[cfg(feature = "alloc")]
pub use self::handover::{adopt_counted, release_late};
#[cfg(feature = "alloc")]
pub use self::head::{Methods, Orphan};
#[cfg(feature = "alloc")]
pub use self::sweeper::{pending, sweep};

/// Frees blocks of which nothing is out any more. Without `alloc` there are none.
#[cfg(not(feature = "alloc"))]
pub fn sweep() {}
