//! The trait `Allocator` of `allocator-api2`, in each version.
//!
//! With its feature `nightly`, version 0.2 has the trait of the standard library in place of its
//! own.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::{PoolAllocator, SharedPool};

/// Implements the trait `$allocator`, whose error is `$error`.
macro_rules! allocator {
    ($allocator:path, $error:path) => {
        /// A block is valid until it is freed, since it keeps its lease. A block of one clone may
        /// be freed through another.
        // SAFETY:
        // - valid: a block keeps the lease of its buffer (A1), and so its memory, until it is given
        //   back here. No allocator, clone or pool has to live for that, or to stay where it is.
        // - exclusive: no two buffers share bytes, and the buffer is gone (A2).
        // - clones: a block says itself what it belongs to; a clone zeroes as the original does.
        unsafe impl<P: SharedPool> $allocator for PoolAllocator<P> {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $error> {
                let block = self.take(layout).ok_or($error)?;
                Ok(NonNull::slice_from_raw_parts(block, layout.size()))
            }

            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                if layout.size() != 0 {
                    // SAFETY: it has bytes, so it is a block, and by the caller's promise one of
                    // this allocator that is not used again.
                    unsafe { self.give_back(block) };
                }
            }

            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $error> {
                // SAFETY: the caller's promise.
                let block = unsafe { self.enlarge(block, old, new) }.ok_or($error)?;
                Ok(NonNull::slice_from_raw_parts(block, new.size()))
            }

            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $error> {
                // SAFETY: the caller's promise.
                let block = unsafe { self.enlarge(block, old, new) }.ok_or($error)?;
                // SAFETY: the block has the bytes of `new`, which is not smaller than `old`.
                let added = unsafe { block.add(old.size()) };
                // SAFETY: as above; they are the caller's, who has not got them yet.
                unsafe { added.write_bytes(0, new.size() - old.size()) };
                Ok(NonNull::slice_from_raw_parts(block, new.size()))
            }

            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $error> {
                // SAFETY: the caller's promise.
                let block = unsafe { self.reduce(block, old, new) }.ok_or($error)?;
                Ok(NonNull::slice_from_raw_parts(block, new.size()))
            }
        }
    };
}

#[cfg(feature = "allocator-api2-0_2")]
allocator!(allocator_api2::alloc::Allocator, allocator_api2::alloc::AllocError);

#[cfg(feature = "allocator-api2-0_4")]
allocator!(allocator_api2_0_4::alloc::Allocator, allocator_api2_0_4::alloc::AllocError);
