//! Addresses and pages of the operating system.
//!
//! Each system has the same functions:
//!
//! - `page_bytes`: bytes of a page, a power of two; 0 where addresses cannot be reserved.
//! - `has`: whether there is so much memory at all.
//! - `reserve`, `release`: addresses, whose pages are zero when they are touched first.
//! - `commit`: makes pages usable that were reserved or given back.
//! - `give_back`: the pages go to the system, and are zero when they are next touched.
//! - `move_pages`: pages come to other addresses.

#[cfg(all(unix, not(any(miri, loom, shuttle))))]
#[path = "unix.rs"]
mod imp;
#[cfg(all(windows, not(any(miri, loom, shuttle))))]
#[path = "windows.rs"]
mod imp;
#[cfg(any(not(any(unix, windows)), miri, loom, shuttle))]
#[path = "none.rs"]
mod imp;

pub(super) use imp::*;

/// What became of pages that were to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    any(not(target_os = "linux"), miri, loom, shuttle),
    allow(dead_code, reason = "Linux alone moves pages")
)]
pub(super) enum Moved {
    /// They are at the other addresses, and those that they had are as if reserved.
    Yes,
    /// Nothing changed, but what was at the other addresses may be given back.
    No,
    /// Nobody can use the other addresses any more.
    Lost,
}
