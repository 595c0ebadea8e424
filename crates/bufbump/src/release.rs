//! Releases: what the lease of a block does to its shard, on whichever thread. The invariants are
//! those of `shard`.

use core::ptr::NonNull;

use bufkit::orphan;
use bufkit::sync::{Ordering, RELEASE};

use crate::cache::{ThreadCache, local};
use crate::shard::{ABANDONED, Block, Chain, JOINED, ORPHANED, Shard, fold};
use crate::shared::{CoreRef, Shared};

/// Gives the buffer's memory back.
///
/// # Safety
///
/// The buffer of `block` is being released: it is out no more, and nobody uses the block or its
/// bytes again.
#[inline(always)]
pub(crate) unsafe fn release(block: NonNull<Block>) {
    // SAFETY: the caller's promise, until it is counted.
    let owner = unsafe { Block::owner(block) };
    // SAFETY: written when the block was made, and not after.
    let step = unsafe { (*block.as_ptr()).step } as usize;
    #[cfg(feature = "wipe")]
    // SAFETY: the memory of a shard keeps the pool's bookkeeping.
    if !Block::is_own(step) && unsafe { Shared::of(owner).as_ref() }.settings.wipe {
        // SAFETY: the header is the block's, whose buffer nobody uses any more; it is not read
        // again.
        unsafe { block.cast::<u8>().write_bytes(0, crate::shard::HEADER_BYTES) };
    }
    // ORDER: Relaxed: a thread stores its own token, and `NOBODY` over it, itself, so it reads what
    // it stored; no other thread reads its own token here. Where `NOBODY` comes from the pool's end
    // on another thread, either value is right.
    if owner.owner.load(Ordering::Relaxed) == local::token() {
        // SAFETY: a buffer of the shard is being released, on its owner's thread.
        unsafe { release_local(NonNull::from(owner), block.as_ptr().cast(), step) };
    } else {
        // SAFETY: as above; `apart` has no owner.
        unsafe { release_elsewhere(NonNull::from(owner), block, step) };
    }
}

/// Releases a buffer that has a span of its own, or is released on another thread than its owner's.
///
/// # Safety
///
/// The buffer of `block` is being released; these are its owner and its step.
#[inline(never)]
unsafe fn release_elsewhere(owner: NonNull<Shard>, block: NonNull<Block>, step: usize) {
    if Block::is_own(step) {
        // SAFETY: the caller's promise.
        unsafe { Shared::release_large(block, owner) };
    } else {
        // SAFETY: likewise.
        unsafe { release_remote(owner) };
    }
}

/// Releases a buffer on its owner's thread. The functions here take the shard by pointer: a borrow
/// would have to last until the end of the function, and the shard need not (B4).
///
/// # Safety
///
/// The buffer of `block` is being released, the calling thread owns its shard, and `step` is the
/// block's.
#[inline(always)]
unsafe fn release_local(shard: NonNull<Shard>, block: *mut u8, step: usize) {
    // SAFETY: valid until the release is counted (B3).
    let header = unsafe { shard.as_ref() };
    let own = &header.own;
    // ORDER: Relaxed, for both: this thread wrote them.
    let local_frees = own.local_frees.load(Ordering::Relaxed).wrapping_add(1);
    let allocated = own.allocated.load(Ordering::Relaxed);
    // The newest: its place is the next one's, while it is hot.
    if block.addr() + step == own.bump.get().addr() {
        own.bump.set(block);
    }
    // ORDER: Acquire pairs with the Release of `release_remote`, as in `is_empty`.
    let others = header.remote_frees.load(Ordering::Acquire);
    if allocated.wrapping_sub(local_frees) == others {
        if others != 0 || header.is_listed() {
            // SAFETY: the caller's promise.
            return unsafe { emptied(shard, others) };
        }
        own.bump.set(own.base.get());
    }
    // ORDER: Release pairs with the Acquire loads in `is_for_trim`: what this thread did with
    // the memory happened before it is freed. The last access to the shard (B4).
    own.local_frees.store(local_frees, RELEASE);
}

/// Releases the last buffer of a shard, on the owner's thread. The shard is not being carved, or
/// others released from it.
///
/// # Safety
///
/// As for [`release_local`]; this is the last buffer that is out, and `others` is the count with
/// it.
#[cold]
#[inline(never)]
unsafe fn emptied(shard: NonNull<Shard>, others: usize) {
    // SAFETY: valid until the release is counted (B3).
    let header = unsafe { shard.as_ref() };
    if !header.is_listed() {
        header.own.bump.set(header.own.base.get());
        // SAFETY: nothing else is out, and the release is counted by this.
        return unsafe { fold(shard, others) };
    }
    // SAFETY: an owned shard's cache is valid, until its thread has let go of it.
    let cache = unsafe { &*header.own.cache.get().cast::<ThreadCache>() };
    let mut over = Chain::new();
    // SAFETY: listed, and nothing else is out of it.
    if unsafe { cache.retire(shard, &mut over) } {
        // A provider may be called from here on, and may end the pool: the cache is not used any
        // more.
        // SAFETY: nothing is out of it, and it is this thread's alone.
        unsafe { Shared::recycle_all(over) };
    } else {
        // The pool was dropped on another thread, at this moment.
        // SAFETY: the caller's promise.
        unsafe { release_remote(shard) };
    }
}

/// Releases a buffer on another thread than the owner's, or one without owner.
///
/// # Safety
///
/// A buffer of the shard is being released.
unsafe fn release_remote(shard: NonNull<Shard>) {
    // SAFETY: valid until the release is counted (B3).
    let header = unsafe { shard.as_ref() };
    // ORDER: Release pairs with the Acquire loads of the owner and of `is_for_trim`, and with the
    // Acquire here of the last: what was done with the memory happened before it is used again, or
    // freed. The last access to the shard, unless this is the last release, or the pool has ended
    // (B4).
    let before = header.remote_frees.fetch_add(1, JOINED);
    if before == ABANDONED - 1 {
        // SAFETY: the shard keeps it.
        let _core = unsafe { CoreRef::add(Shared::of(header)) };
        // SAFETY: abandoned, and nothing is out: the shard is ours alone.
        unsafe { Shared::recycle(shard) };
    } else if before >= ORPHANED {
        // SAFETY: orphaned before this release, which `orphan` has not counted. Nobody uses the
        // buffer, or the shard for its sake, again.
        unsafe { orphan::release_orphaned(shard.cast()) };
    }
}
