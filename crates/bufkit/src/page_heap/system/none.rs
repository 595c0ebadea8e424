//! Other systems, and models: no addresses are reserved, so the rest is never called.

use core::ptr::NonNull;

use super::Outcome;

pub(crate) fn page_bytes() -> usize {
    0
}

/// Says yes: it says so when pages are committed.
pub(crate) fn has(_: usize) -> bool {
    true
}

pub(crate) fn reserve(_: usize) -> Option<NonNull<u8>> {
    None
}

/// Does nothing.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn release(_: NonNull<u8>, _: usize) {}

/// Does nothing.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn commit(_: NonNull<u8>, _: usize) -> bool {
    true
}

/// Refuses.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn discard(_: NonNull<u8>, _: usize) -> bool {
    false
}

/// Refuses.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn give_back(_: NonNull<u8>, _: usize) -> Outcome {
    Outcome::Refused
}

/// Refuses.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn renew(_: NonNull<u8>, _: usize) -> Outcome {
    Outcome::Refused
}

/// Refuses.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn move_pages(_: NonNull<u8>, _: NonNull<u8>, _: usize, _: bool) -> Outcome {
    Outcome::Refused
}
