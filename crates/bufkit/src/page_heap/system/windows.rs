//! Windows: pages are committed before use and decommitted after.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::Outcome;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;
const PAGE_READWRITE: u32 = 4;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualAlloc(address: *mut c_void, size: usize, kind: u32, protect: u32) -> *mut c_void;
    fn VirtualFree(address: *mut c_void, size: usize, kind: u32) -> i32;
}

/// Returns 4096: so it is on every processor.
pub(crate) fn page_bytes() -> usize {
    4096
}

/// Says yes: it says so when pages are committed.
pub(crate) fn has(_: usize) -> bool {
    true
}

pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: it reserves addresses that nobody has.
    NonNull::new(unsafe { VirtualAlloc(ptr::null_mut(), bytes, MEM_RESERVE, PAGE_READWRITE) }.cast())
}

/// Gives addresses back.
///
/// # Safety
///
/// From `reserve`, all of it, and not used again.
pub(crate) unsafe fn release(start: NonNull<u8>, _bytes: usize) {
    // SAFETY: the caller's promise. It fails for nothing that was reserved.
    unsafe { VirtualFree(start.as_ptr().cast(), 0, MEM_RELEASE) };
}

/// Makes pages usable.
///
/// # Safety
///
/// Pages of a reservation.
pub(crate) unsafe fn commit(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise. What is committed already stays as it is.
    !unsafe { VirtualAlloc(start.as_ptr().cast(), bytes, MEM_COMMIT, PAGE_READWRITE) }.is_null()
}

/// Refuses: pages that went would have to be committed again, which may fail.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn discard(_: NonNull<u8>, _: usize) -> bool {
    false
}

/// Gives pages back.
///
/// # Safety
///
/// Pages of a reservation, of which nobody uses what is in them.
pub(crate) unsafe fn give_back(start: NonNull<u8>, bytes: usize) -> Outcome {
    // SAFETY: the caller's promise.
    let is_done = unsafe { VirtualFree(start.as_ptr().cast(), bytes, MEM_DECOMMIT) } != 0;
    if is_done { Outcome::Done } else { Outcome::Refused }
}

/// Refuses: no pages are moved, so all mappings are as they were.
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
