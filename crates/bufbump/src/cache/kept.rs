//! The buffer with a span of its own that a thread keeps.
//!
//! # Invariants
//!
//! - K1: only the cache's thread keeps one. Whoever takes it out, by an exchange, has it alone.
//! - K2: once `CLOSED` is there, it stays.

use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicPtr, AtomicUsize, Ordering};

use crate::shard::Block;

/// In an address: a look of `trim_idle` saw it.
const SEEN: usize = 1;
/// In place of an address: none is kept any more.
const CLOSED: usize = 2;

/// One block, or none.
#[derive(Default)]
pub(crate) struct Kept {
    block: AtomicPtr<Block>,
    /// Bytes of its span, for `stats`.
    bytes: AtomicUsize,
}

/// Returns the block that `value` is the address of.
fn block_of(value: *mut Block) -> Option<NonNull<Block>> {
    NonNull::new(value.map_addr(|addr| addr & !(SEEN | CLOSED)))
}

impl Kept {
    /// Takes the block, for the cache's thread or a trim. The caller holds a handle, or the lock of
    /// a cache that is open.
    #[inline]
    pub(crate) fn take(&self) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: a hint. Of its own, a thread sees the newest.
        if self.block.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // ORDER: Acquire pairs with the Release of `keep`.
        block_of(self.block.swap(ptr::null_mut(), Ordering::Acquire))
    }

    /// Keeps a block, whose span has `bytes` bytes, for the calling thread, whose cache it is. If
    /// it returns `false`, the block is still the caller's.
    #[inline]
    pub(crate) fn keep(&self, block: NonNull<Block>, bytes: usize) -> bool {
        // ORDER: Relaxed: a hint.
        if !self.block.load(Ordering::Relaxed).is_null() {
            return false;
        }
        // ORDER: Relaxed: a number for people.
        self.bytes.store(bytes, Ordering::Relaxed);
        // ORDER: Release pairs with the Acquire of `take`, `trim` and `close`: who takes the block
        // comes after its buffer's last use. Relaxed: nothing is done with what was found.
        let kept = self.block.compare_exchange(
            ptr::null_mut(),
            block.as_ptr(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        kept.is_ok()
    }

    /// Takes the block if the last such look saw it as well, or else notes that it saw it. The
    /// caller holds a handle.
    pub(crate) fn take_unused(&self) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: the exchanges look again.
        let seen = self.block.load(Ordering::Relaxed);
        let block = block_of(seen)?;
        let is_unused = seen.addr() & SEEN != 0;
        let then = if is_unused { ptr::null_mut() } else { seen.map_addr(|addr| addr | SEEN) };
        // ORDER: Acquire pairs with the Release of `keep`. Relaxed: it was used.
        let done = self.block.compare_exchange(seen, then, Ordering::Acquire, Ordering::Relaxed);
        (is_unused && done.is_ok()).then_some(block)
    }

    /// Takes the block, and keeps none any more.
    pub(crate) fn close(&self) -> Option<NonNull<Block>> {
        // ORDER: Acquire pairs with the Release of `keep`.
        block_of(self.block.swap(ptr::without_provenance_mut(CLOSED), Ordering::Acquire))
    }

    /// Returns the bytes of the span of the block, if there is one at this moment.
    pub(crate) fn bytes(&self) -> Option<usize> {
        // ORDER: Relaxed, for both: numbers for people.
        block_of(self.block.load(Ordering::Relaxed)).map(|_kept| self.bytes.load(Ordering::Relaxed))
    }
}
