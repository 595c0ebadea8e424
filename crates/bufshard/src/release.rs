//! Releases that a thread's cache does not take at once.

use core::ptr::NonNull;

use crate::block::Block;
use crate::chain::Chain;
use crate::node::Node;
use crate::shared::{Refs, Shared};

/// A release that a thread's cache did not take at once. Where that cache was found, the release is counted already.
///
/// # Safety
///
/// The caller has the block, and gives it up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn slow(block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let id = unsafe { block.as_ref() }.id();
    match Node::recall(id) {
        // SAFETY: the caller's promise; the cache is that of the block's pool.
        Some(node) => unsafe { beside(node, block) },
        // SAFETY: the caller's promise.
        None => unsafe { elsewhere(block) },
    }
}

/// A release by a thread whose cache was found at once, and did not take the block: it is full, or claimed, or its pool is gone, or the
/// block is for one buffer only.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn beside(node: &Node, block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (shared, class) = (header.shared(), header.class());
    if header.is_single() {
        // SAFETY: the caller's promise.
        return unsafe { free(shared, block) };
    }
    if !node.enter() {
        if node.is_gone() {
            node.drain_closed();
        }
        // SAFETY: the caller's promise.
        return unsafe { put(shared, node.home(), class, block) };
    }
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3).
    if node.is_waited() && unsafe { shared.as_ref() }.is_waited_for() {
        node.leave();
        // SAFETY: the caller's promise.
        return unsafe { free(shared, block) };
    }
    // SAFETY: the cache keeps the pool's bookkeeping: it is on this thread's list.
    let pool = unsafe { shared.as_ref() };
    // SAFETY: the caller's promise; of this pool.
    if unsafe { node.put_one(class, block) } {
        return node.leave();
    }
    let mut rest = pool.put(node.home(), class, || node.take_of_stack(class));
    // SAFETY: as above: it was not taken.
    if !unsafe { node.put_one(class, block) } {
        // A class of which a thread keeps nothing.
        let mut block = Some(block);
        rest.append(pool.put(node.home(), class, || block.take()));
    }
    node.leave();
    node.counts.look_at_others(pool.counts());
    // Last: where the pool is gone, an allocator that uses pools itself may let go of the cache.
    pool.was_put(class, rest);
}

/// A release by a thread whose cache was not found at once, because it has none, or has used other pools since, or is ending.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn elsewhere(block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (shared, class) = (header.shared(), header.class());
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3).
    let pool = unsafe { shared.as_ref() };
    if let Some(node) = pool.node() {
        node.remember();
        node.counts.released(class, header.counted_bytes());
        // SAFETY: the caller's promise.
        return unsafe { beside(node, block) };
    }
    pool.common.released(class, header.counted_bytes());
    if header.is_single() {
        // SAFETY: the caller's promise.
        return unsafe { free(shared, block) };
    }
    // SAFETY: the caller's promise.
    unsafe { put(shared, 0, class, block) };
}

/// Puts a single block into the shards, or frees it.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn put(shared: NonNull<Shared>, home: usize, class: usize, block: NonNull<Block>) {
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3), and this keeps it until the end of the function: once the block is in
    // the shards, the pool may end.
    unsafe { shared.as_ref() }.keepers.add_ref();
    // SAFETY: the reference from above.
    let _kept = unsafe { Refs::new(shared, 1) };
    let mut chain = Chain::new();
    // SAFETY: the caller's promise.
    unsafe { chain.push(block) };
    // SAFETY: kept, as above.
    unsafe { shared.as_ref() }.store(home, class, chain);
}

/// Frees a block.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn free(shared: NonNull<Shared>, block: NonNull<Block>) {
    let mut chain = Chain::new();
    // SAFETY: the caller's promise.
    unsafe { chain.push(block) };
    // SAFETY: likewise; of this pool.
    unsafe { Shared::free_chain(shared, chain) };
}
