//! The bytes of a block's buffer: how many they are, which for some only the pool's heap knows.

use core::ptr::NonNull;

use super::Shared;
use crate::block::{Block, HEADER_BYTES};
use crate::class::{self, MAX_CLASSES};

impl Block {
    /// Returns how many bytes the buffer may have: those of the class, or at least those of the
    /// request.
    ///
    /// # Safety
    ///
    /// The block is valid, and in no chain.
    pub(crate) unsafe fn usable_bytes(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        let header = unsafe { block.as_ref() };
        if !header.is_single() {
            return class::bytes_of(header.class());
        }
        // SAFETY: the caller's promise.
        let Some(span) = (unsafe { Self::span(block) }) else {
            let offset = header.slab_offset();
            // SAFETY: a block that is in no chain keeps the bookkeeping, with the heap.
            let heap = unsafe { &Shared::of(header).as_ref().heap };
            // SAFETY: of a slab, so far behind its start (K4).
            return unsafe { heap.block_bytes(block.cast(), offset) } - HEADER_BYTES;
        };
        // SAFETY: the block's.
        let from = unsafe { span.start() };
        // SAFETY: likewise.
        let all = unsafe { span.len() };
        // SAFETY: the caller's promise.
        let start = unsafe { Self::start(block) };
        all - (start.addr().get() - from.addr().get())
    }

    /// Returns the bytes that the buffer counts as in the statistics, or 0 without statistics.
    ///
    /// # Safety
    ///
    /// The block is valid.
    #[inline(always)]
    pub(crate) unsafe fn counted_bytes(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        match unsafe { block.as_ref() }.class() {
            _ if cfg!(not(feature = "stats")) => 0,
            class if class < MAX_CLASSES => class::bytes_of(class),
            // SAFETY: likewise.
            _ => unsafe { Self::usable_bytes(block) },
        }
    }

    /// Zeroes the bytes.
    ///
    /// # Safety
    ///
    /// The caller has the block.
    #[cfg(feature = "wipe")]
    pub(crate) unsafe fn zero(block: NonNull<Block>) {
        // SAFETY: the caller has the block.
        let start = unsafe { Self::start(block) };
        // SAFETY: likewise.
        let bytes = unsafe { Self::usable_bytes(block) };
        // SAFETY: the block's.
        unsafe { start.write_bytes(0, bytes) };
    }

    /// Writes to each page, so that the system gives them now.
    ///
    /// # Safety
    ///
    /// The caller has the block.
    pub(crate) unsafe fn touch(block: NonNull<Block>) {
        const PAGE_BYTES: usize = 4096;
        // SAFETY: the caller has the block.
        let start = unsafe { Self::start(block) };
        // SAFETY: likewise.
        let bytes = unsafe { Self::usable_bytes(block) };
        for at in (0..bytes).step_by(PAGE_BYTES) {
            // SAFETY: within the bytes.
            let place = unsafe { start.add(at) };
            // SAFETY: likewise, and the caller's alone. Volatile, so that the store of zero over
            // zero stays.
            unsafe { place.as_ptr().write_volatile(0) };
        }
    }
}
