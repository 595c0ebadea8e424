//! Addresses and pages of the operating system.
//!
//! Each system has the same functions:
//!
//! - `page_bytes`: bytes of a page, a power of two; 0 where addresses cannot be reserved.
//! - `has`: whether there is so much memory at all.
//! - `reserve`, `release`: addresses, whose pages are zero when they are touched first.
//! - `commit`: makes pages usable that were reserved or given back.
//! - `discard`: the pages go to the system, and are zero when they are next touched. Where it is
//!   refused, nothing changed.
//! - `give_back`: likewise, by calls that may lose the addresses.
//! - `renew`: likewise, with the mapping made anew, which joins it with those around.
//! - `move_pages`: pages come to other addresses; used ones with what is in them, all or none.
//!
//! # Invariants
//!
//! - Y1: what a reservation has of addresses is mapped, or [`Outcome::Lost`]. The system may unmap
//!   addresses before it refuses to map something there, and another thread's mapping may come
//!   there at once. So nobody touches, maps or unmaps lost addresses, not even at the end.

#[cfg(all(unix, not(any(miri, loom, shuttle))))]
#[path = "unix.rs"]
mod imp;
#[cfg(all(windows, not(any(miri, loom, shuttle))))]
#[path = "windows.rs"]
mod imp;
#[cfg(any(not(any(unix, windows)), miri, loom, shuttle))]
#[path = "none.rs"]
mod imp;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod hooks;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) use self::hooks::*;
#[cfg(not(all(test, not(any(loom, shuttle)))))]
pub(super) use self::imp::*;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(any(not(unix), miri, loom, shuttle), allow(dead_code, reason = "no system refuses there"))]
pub(super) enum Outcome {
    /// It did what it is for. Addresses that pages moved from are as if reserved.
    Done,
    /// Nothing changed, but pages that were at the addresses to move to may be gone.
    Refused,
    /// Nobody may use the addresses any more; of a move, those to move to (Y1).
    Lost,
}
