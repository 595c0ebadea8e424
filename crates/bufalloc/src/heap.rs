//! The heap of the process.
//!
//! # Invariants
//!
//! - H1: the heap is made once, by the thread that is first to ask for it. Other threads meanwhile
//!   use the allocator below, so none waits, nor does a child that was forked then.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::thread;

use bufkit::{PageHeap, PageStats, Span};

use crate::{fork, upkeep};

/// The bytes of addresses.
#[cfg(all(target_pointer_width = "64", not(windows)))]
const ADDRESSES: usize = 1 << 40;
// Windows counts the tables.
#[cfg(all(target_pointer_width = "64", windows))]
const ADDRESSES: usize = 4 << 30;
#[cfg(not(target_pointer_width = "64"))]
const ADDRESSES: usize = 256 << 20;

static HEAP: OnceLock<PageHeap> = OnceLock::new();
static IS_TRIED: AtomicBool = AtomicBool::new(false);

/// Returns the heap, if it is there and this thread may use it.
#[inline]
pub(crate) fn get() -> Option<&'static PageHeap> {
    HEAP.get().filter(|_| !fork::is_here())
}

/// Returns the heap, which has this limit if this call makes it, if this thread may take spans.
#[inline]
pub(crate) fn get_or_make(max_bytes: usize) -> Option<&'static PageHeap> {
    // What prints a panic allocates, and does not wait should the panic be one under the lock.
    if thread::panicking() {
        return None;
    }
    match HEAP.get() {
        Some(heap) => Some(heap).filter(|_| !fork::is_here()),
        None => make(max_bytes),
    }
}

#[cold]
fn make(max_bytes: usize) -> Option<&'static PageHeap> {
    // ORDER: Relaxed: the operations decide who makes it (H1); the heap is published by the lock.
    if IS_TRIED.load(Ordering::Relaxed) || IS_TRIED.swap(true, Ordering::Relaxed) {
        return None;
    }
    let heap = PageHeap::with_addresses(ADDRESSES, max_bytes)?;
    if !fork::register() {
        return None;
    }
    upkeep::begin();
    HEAP.set(heap).ok()?;
    HEAP.get()
}

/// Returns the span that starts at an address, if it is the heap's.
#[inline]
pub(crate) fn span_at(start: NonNull<u8>) -> Option<(&'static PageHeap, Span)> {
    let heap = HEAP.get()?;
    Some((heap, heap.span_at(start)?))
}

/// Gives a span back.
///
/// # Safety
///
/// As for `PageHeap::give`.
pub(crate) unsafe fn give(heap: &PageHeap, span: Span) {
    if fork::is_here() {
        // SAFETY: the caller's promise.
        unsafe { fork::defer(span) };
    } else {
        // SAFETY: likewise.
        unsafe { heap.give(span) };
    }
}

/// Returns the statistics of the heap of the large blocks.
///
/// ```
/// #[global_allocator]
/// static ALLOC: bufalloc::Large = bufalloc::Large::new();
///
/// let block = vec![1_u8; 1 << 20];
/// let stats = bufalloc::stats();
/// let used = stats.resident_bytes - stats.dirty_bytes;
/// assert!(used >= block.len() || stats.address_bytes == 0); // no addresses: all are below
/// ```
#[must_use]
pub fn stats() -> PageStats {
    get().map(PageHeap::stats).unwrap_or_default()
}

/// Returns all free pages of the heap of the large blocks to the system.
///
/// ```
/// #[global_allocator]
/// static ALLOC: bufalloc::Large = bufalloc::Large::new();
///
/// drop(vec![1_u8; 8 << 20]);
/// bufalloc::trim(); // at once, and not after the age
/// assert_eq!(bufalloc::stats().dirty_bytes, 0);
/// ```
pub fn trim() {
    if let Some(heap) = get() {
        heap.trim(0);
    }
}
