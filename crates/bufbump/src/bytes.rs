//! The bytes of a block's buffer, and its pool. If the buffer has a span of its own, the pool's
//! settings say where they are.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise is behind all of a block: the buffer is in use, or is being made"
)]

use core::ptr::NonNull;

use crate::shard::{Block, HEADER_BYTES};
use crate::shared::Shared;

impl Block {
    /// Returns the pool's bookkeeping.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    pub(crate) unsafe fn pool<'a>(block: NonNull<Block>) -> &'a Shared {
        // SAFETY: the caller's promise.
        unsafe { Self::pool_ptr(block).as_ref() }
    }

    /// Returns where the pool's bookkeeping is.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    pub(crate) unsafe fn pool_ptr(block: NonNull<Block>) -> NonNull<Shared> {
        // SAFETY: the caller's promise; the memory keeps the bookkeeping (B3).
        unsafe {
            match Self::shard(block) {
                Some(shard) => Shared::of(shard),
                None => Shared::of_apart(Self::owner_ptr(block)),
            }
        }
    }

    /// Returns the start of the buffer's bytes.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    pub(crate) unsafe fn start(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: the caller's promise; a span has more bytes than what is in front.
        unsafe {
            match Self::shard(block) {
                Some(_) => Self::behind(block),
                None => Self::own_start(block, Self::pool(block)),
            }
        }
    }

    /// Returns the start of the bytes of a buffer with a span of its own, whose pool that is.
    ///
    /// # Safety
    ///
    /// As for [`span`](Self::span).
    #[inline]
    pub(crate) unsafe fn own_start(block: NonNull<Block>, pool: &Shared) -> NonNull<u8> {
        // SAFETY: the caller's promise; a span has more bytes than what is in front.
        unsafe { Self::span(block).start().add(pool.settings.lead) }
    }

    /// Returns how many bytes the buffer has room for.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline]
    pub(crate) unsafe fn capacity(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match (*block.as_ptr()).step as usize {
                step if Self::is_own(step) => Self::span_bytes(block) - Self::pool(block).settings.lead,
                step => step - HEADER_BYTES,
            }
        }
    }
}
