//! A block: the header of each buffer.
//!
//! In front of its bytes, if these are in a shard. A buffer with a span of its own has its header
//! in the span's place, so that no page is for it alone.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise is behind all of a block: the buffer is in use, or is being made"
)]

use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufkit::Span;

use super::Shard;

/// Bytes of a header. More where a model checker's atomics are in it.
pub(crate) const HEADER_BYTES: usize = if cfg!(any(loom, shuttle)) { 128 } else { 16 };

/// What each buffer has beside its bytes. Its fields are written one by one: what padding it may
/// have stays initialised.
#[repr(C)]
pub(crate) struct Block {
    /// The shard that the bytes are in, or the pool's `apart` if the buffer has a span of its own:
    /// so that a release looks at its owner, and at nothing else, where all is as usual.
    owner: NonNull<Shard>,
    /// Handles that share the buffer. Used by `bufcore` only.
    views: RefCount,
    /// Bytes from the start of this block to the end of its buffer's capacity; `OWN_ZERO` or
    /// `OWN_USED` if the buffer has a span of its own.
    pub(crate) step: u32,
    /// That span. The place has no room for a header in models, which is at the span's start there.
    #[cfg(any(loom, shuttle))]
    span: Span,
}

/// The step of a buffer with a span of its own, to whose bytes nobody has written yet.
const OWN_ZERO: u32 = 0;
/// The step of another buffer with a span of its own.
const OWN_USED: u32 = 1;

const _: () = assert!(size_of::<Block>() <= HEADER_BYTES && align_of::<Block>() <= 8);
const _: () = assert!(cfg!(any(loom, shuttle)) || HEADER_BYTES <= Span::PLACE_BYTES);

impl Block {
    /// Returns the start of the bytes of a buffer in a shard.
    #[inline(always)]
    pub(crate) fn behind(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: a header of a shard is followed by bytes of it, or is at its end.
        unsafe { block.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Returns the count of handles.
    ///
    /// # Safety
    ///
    /// The block is that of a buffer that is in use, for as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn views<'a>(block: NonNull<Block>) -> &'a RefCount {
        // SAFETY: valid while the buffer is in use (B3); atomics may be shared.
        unsafe { &(*block.as_ptr()).views }
    }

    /// Returns the shard, or `None` if the buffer has a span of its own.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline]
    pub(crate) unsafe fn shard<'a>(block: NonNull<Block>) -> Option<&'a Shard> {
        // SAFETY: the caller's promise; the owner is a shard then, which is valid while the buffer
        // is in use (B3).
        unsafe { ((*block.as_ptr()).step > OWN_USED).then(|| Self::owner(block)) }
    }

    /// Returns whether a step is that of a buffer with a span of its own.
    pub(crate) fn is_own(step: usize) -> bool {
        step <= OWN_USED as usize
    }

    /// Returns whether the buffer has a span of its own that was all zero when it was acquired.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    pub(crate) unsafe fn was_zero(block: NonNull<Block>) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*block.as_ptr()).step == OWN_ZERO }
    }

    /// Returns what `owner` is. The field is not written after the block was made.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline(always)]
    pub(crate) unsafe fn owner<'a>(block: NonNull<Block>) -> &'a Shard {
        // SAFETY: the caller's promise. A shard is valid while the buffer is in use (B3), and so is
        // the pool's bookkeeping.
        unsafe { Self::owner_ptr(block).as_ref() }
    }

    /// Returns `owner`, with which the bookkeeping around `apart` may be reached.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline(always)]
    pub(crate) unsafe fn owner_ptr(block: NonNull<Block>) -> NonNull<Shard> {
        // SAFETY: the caller's promise.
        unsafe { (*block.as_ptr()).owner }
    }

    /// Returns the span of a buffer that has one of its own.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views), of a block of such a buffer.
    pub(crate) unsafe fn span(block: NonNull<Block>) -> Span {
        // SAFETY: the caller's promise: the block is the span's place.
        #[cfg(not(any(loom, shuttle)))]
        unsafe {
            Span::of_place(block.cast())
        }
        // SAFETY: the caller's promise.
        #[cfg(any(loom, shuttle))]
        unsafe {
            (*block.as_ptr()).span
        }
    }

    /// Returns the bytes of that span.
    ///
    /// # Safety
    ///
    /// As for [`span`](Self::span).
    pub(crate) unsafe fn span_bytes(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Self::span(block).len() }
    }

    /// Writes the header of a buffer.
    ///
    /// # Safety
    ///
    /// `block` is valid for writes of a header, aligned for it, and used by nobody else.
    #[inline(always)]
    pub(super) unsafe fn write(block: *mut Block, owner: NonNull<Shard>, step: u32) -> *mut Block {
        // SAFETY: the caller's promise.
        unsafe {
            (&raw mut (*block).owner).write(owner);
            (&raw mut (*block).step).write(step);
            // The count needs no first value: it is stored before it is read. But the model
            // checker's atomics have to be made.
            #[cfg(any(loom, shuttle))]
            (&raw mut (*block).views).write(RefCount::new());
        }
        block
    }

    /// Makes the block of a buffer that has all of a span.
    ///
    /// # Safety
    ///
    /// The span is the caller's, who gives it up, and has at least `lead` bytes; `apart` is the
    /// pool's, which stays until the buffer is released.
    pub(crate) unsafe fn of_span(span: Span, apart: NonNull<Shard>) -> NonNull<Block> {
        // SAFETY: the caller's promise.
        #[cfg(not(any(loom, shuttle)))]
        let block = unsafe { span.place() }.cast::<Block>();
        // SAFETY: likewise.
        #[cfg(any(loom, shuttle))]
        let block = unsafe { span.start() }.cast::<Block>();
        // SAFETY: there is room for a header there, which is nobody else's.
        unsafe {
            #[cfg(any(loom, shuttle))]
            (&raw mut (*block.as_ptr()).span).write(span);
            Self::write(block.as_ptr(), apart, if span.is_zero() { OWN_ZERO } else { OWN_USED });
        }
        block
    }

    /// Makes the block of a buffer with a span of its own that of another one.
    ///
    /// # Safety
    ///
    /// Its buffer was released, and the caller has it alone.
    pub(crate) unsafe fn reuse(block: NonNull<Block>) {
        // SAFETY: the caller's promise. The step is the only field that depends on what was before.
        unsafe { (&raw mut (*block.as_ptr()).step).write(OWN_USED) };
    }
}
