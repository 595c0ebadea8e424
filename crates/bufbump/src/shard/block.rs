//! A block: the header of each buffer, in front of its bytes.

use core::ptr::NonNull;

use bufcore::author::RefCount;

use super::Shard;

/// Bytes of a header. More where a model checker's atomics are in it.
pub(crate) const HEADER_BYTES: usize = if cfg!(any(loom, shuttle)) { 128 } else { 16 };

/// What each buffer has beside its bytes. Its fields are written one by one: what padding it may
/// have stays initialised.
#[repr(C)]
pub(crate) struct Block {
    /// The shard that the bytes are in.
    shard: NonNull<Shard>,
    /// Handles that share the buffer. Used by `bufcore` only.
    views: RefCount,
    /// Bytes from the start of this block to the end of its buffer's capacity. Zero where the
    /// buffer is all of its shard.
    pub(crate) step: u32,
}

const _: () = assert!(size_of::<Block>() <= HEADER_BYTES && align_of::<Block>() <= 8);

impl Block {
    /// Returns the start of the buffer's bytes.
    #[inline(always)]
    pub(crate) fn behind(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: a header is followed by bytes of its region, or is at its end.
        unsafe { block.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Returns the count of handles.
    ///
    /// # Safety
    ///
    /// The block is that of a buffer that is out, for as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn views<'a>(block: NonNull<Block>) -> &'a RefCount {
        // SAFETY: valid while the buffer is out (B3); atomics may be shared.
        unsafe { &(*block.as_ptr()).views }
    }

    /// Returns the shard.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline]
    pub(crate) unsafe fn shard<'a>(block: NonNull<Block>) -> &'a Shard {
        // SAFETY: written when the block was made, and not after.
        let shard = unsafe { (*block.as_ptr()).shard };
        // SAFETY: valid while the buffer is out (B3).
        unsafe { shard.as_ref() }
    }

    /// Returns how many bytes the buffer has room for.
    ///
    /// # Safety
    ///
    /// As for [`views`](Self::views).
    #[inline]
    pub(crate) unsafe fn capacity(block: NonNull<Block>) -> usize {
        // SAFETY: written when the block was made, and not after.
        match unsafe { (*block.as_ptr()).step } {
            // SAFETY: the caller's promise.
            0 => unsafe { Self::shard(block) }.asked(),
            step => step as usize - HEADER_BYTES,
        }
    }

    /// Writes the header in front of a buffer.
    ///
    /// # Safety
    ///
    /// `block` is valid for writes of a header, aligned for it, and used by nobody else.
    #[inline(always)]
    pub(super) unsafe fn write(block: *mut Block, owner: &Shard, step: u32) -> *mut Block {
        // SAFETY: the caller's promise.
        let shard = unsafe { &raw mut (*block).shard };
        // SAFETY: likewise.
        unsafe { shard.write(NonNull::from(owner)) };
        // SAFETY: likewise.
        let place = unsafe { &raw mut (*block).step };
        // SAFETY: likewise.
        unsafe { place.write(step) };
        // The count needs no first value: it is stored before it is read. But the model checker's
        // atomics have to be made.
        #[cfg(any(loom, shuttle))]
        // SAFETY: likewise.
        unsafe {
            (&raw mut (*block).views).write(RefCount::new())
        };
        block
    }
}
