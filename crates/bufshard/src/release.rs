//! Releases that a thread's cache does not take at once.

use core::ptr::NonNull;

use crate::block::Block;
use crate::cache::{Arrays, ThreadCache};
use crate::chain::Chain;
use crate::counts::Why;
use crate::request::Turn;
use crate::shared::{CoreRef, Shared};

/// Releases a block that a thread's cache did not take at once. Where that was the last cache that
/// the thread has found, the release is counted already.
///
/// # Safety
///
/// The caller has the block, and gives it up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn release_slow(block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (id, class) = (Shared::id_of(header), header.class());
    if let Some(cache) = ThreadCache::recall_last(id) {
        // SAFETY: the caller's promise; the cache is that of the block's pool.
        return unsafe { release_cached(cache, block) };
    }
    let Some(cache) = ThreadCache::recall(id) else {
        // SAFETY: the caller's promise.
        return unsafe { release_uncached(block) };
    };
    // SAFETY: the caller has the block.
    cache.counts.released(class, unsafe { Block::counted_bytes(block) });
    // SAFETY: the caller's promise; the cache is that of the block's pool.
    if !unsafe { cache.push(class, block) } {
        // SAFETY: the same; it was not taken.
        unsafe { release_cached(cache, block) };
    }
}

/// Releases a block by a thread whose cache was found at once, and did not take the block: it is
/// full, or claimed, or its pool is gone, or the block is for one buffer only.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn release_cached(cache: &ThreadCache, block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (shared, class) = (Shared::of(header), header.class());
    if header.is_single() {
        // SAFETY: the caller's promise.
        return unsafe { free(shared, block) };
    }
    let is_warm = cache.is_warm_now();
    if !cache.enter() {
        // SAFETY: the caller's promise; of this pool.
        return unsafe { release_beside(cache, block) };
    }
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3).
    if cache.is_waited() && unsafe { shared.as_ref() }.is_waited_for() {
        if cache.leave() {
            cache.drain_closed();
        }
        // SAFETY: the caller's promise.
        return unsafe { free(shared, block) };
    }
    // SAFETY: the block keeps the pool's bookkeeping, and from when it is in the cache the thread's
    // reference (`cache`, N6).
    let pool = unsafe { shared.as_ref() };
    let mut over = (Chain::new(), None);
    // SAFETY: the caller's promise; of this pool.
    let mut is_kept = is_warm && unsafe { cache.put_apart(class, block) };
    if !is_kept {
        // SAFETY: as above: it was not taken.
        is_kept = unsafe { cache.put_one(class, block) };
    }
    let mut arrays = Arrays::new();
    if !is_kept {
        let is_grown;
        (is_grown, arrays) = cache.note_overflow(class);
        // SAFETY: as above: it was not taken.
        is_kept = is_grown && unsafe { cache.put_one(class, block) };
    }
    if !is_kept {
        // SAFETY: as above: it was not taken.
        over = unsafe { overflow(cache, pool, block) };
    }
    // User code runs from here on, in which the thread may give its reference back. Then only what
    // is left of the blocks, and what was kept for that, keeps the pool's bookkeeping.
    if cache.leave() {
        cache.drain_closed();
    }
    // Of no pool: nothing has to keep it.
    drop(arrays);
    let (rest, kept) = over;
    if !rest.is_empty() || kept.is_some() {
        // SAFETY: given back by the shards; what is kept is of this pool. Nothing of the cache is
        // used afterwards: wakers and the allocator may be the end of it.
        unsafe { Shared::after_put(shared, rest, kept) };
    }
}

/// Releases a block by a thread that may not enter its cache: it is claimed, or its pool is gone,
/// or the thread is to keep nothing.
///
/// # Safety
///
/// The caller has the block, of the cache's pool, and gives it up.
#[cold]
#[inline(never)]
unsafe fn release_beside(cache: &ThreadCache, block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (shared, home, class) = (Shared::of(header), cache.home(), header.class());
    if cache.is_gone() {
        cache.drain_closed();
    } else {
        // SAFETY: the block keeps the pool's bookkeeping (`block`, K3).
        unsafe { Shared::empty_disabled(shared, cache) };
    }
    // SAFETY: the caller's promise.
    unsafe { put(shared, home, class, block) };
}

/// Moves the oldest blocks of a full magazine to the shards, and puts this one in their place.
/// Returns what the shards have no room for, and what keeps the bookkeeping for those who wait.
///
/// # Safety
///
/// The caller has the block, of this pool, and gives it up. The cache is entered.
#[inline(never)]
unsafe fn overflow(cache: &ThreadCache, pool: &Shared, block: NonNull<Block>) -> (Chain, Option<CoreRef>) {
    // SAFETY: the caller has the block.
    let class = unsafe { block.as_ref() }.class();
    let home = cache.home();
    let mut rest = pool.put(home, class, cache.unwanted(class));
    // SAFETY: the caller's promise; of this pool.
    if !unsafe { cache.put_one(class, block) } {
        // A class of which a thread keeps nothing.
        let mut block = Some(block);
        rest.append(pool.put(home, class, || block.take()));
    }
    cache.counts.look_at_others(pool.counts());
    (rest, pool.keep_for_waiters())
}

/// Releases a block by a thread whose cache was not found at once. The thread has no cache, or has
/// used other pools since, or is ending.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn release_uncached(block: NonNull<Block>) {
    // SAFETY: the caller has the block.
    let header = unsafe { block.as_ref() };
    let (shared, class) = (Shared::of(header), header.class());
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3).
    let pool = unsafe { shared.as_ref() };
    if let Some(cache) = pool.cache() {
        cache.remember();
        // SAFETY: the caller has the block.
        cache.counts.released(class, unsafe { Block::counted_bytes(block) });
        // SAFETY: the caller's promise.
        return unsafe { release_cached(cache, block) };
    }
    pool.note_uncached();
    // SAFETY: the caller has the block.
    pool.common.released(class, unsafe { Block::counted_bytes(block) });
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
    // SAFETY: the block keeps the pool's bookkeeping (`block`, K3), and this keeps it until the end
    // of the function: once the block is in the shards, the pool may end.
    let _kept = unsafe { CoreRef::add(shared) };
    let mut chain = Chain::new();
    // SAFETY: the caller's promise.
    unsafe { chain.push(block) };
    // SAFETY: kept, as above.
    unsafe { Shared::store(shared, home, class, chain) };
}

/// Gives back blocks that were obtained for a request which is refused. They are freed and not
/// kept: in the shards they would be idle memory, for which a request that waits looks again.
///
/// # Safety
///
/// The caller has the blocks, of this pool, and gives them up. It holds a handle.
#[cold]
pub(crate) unsafe fn give_back(shared: &Shared, turn: Turn, blocks: impl Iterator<Item = NonNull<Block>>) {
    let counts = ThreadCache::recall(shared.id).map_or(&shared.common, |cache| &cache.counts);
    let mut chain = Chain::new();
    for block in blocks {
        // SAFETY: the caller has the block.
        let class = unsafe { block.as_ref() }.class();
        // SAFETY: likewise.
        counts.released(class, unsafe { Block::counted_bytes(block) });
        // SAFETY: the caller's promise.
        unsafe { chain.push(block) };
    }
    // It would wake itself; `note_returned` tells the others.
    let why = if turn == Turn::First { Why::Returned } else { Why::Trim };
    // SAFETY: the chain is ours, of this pool.
    unsafe { Shared::free_chain(NonNull::from(shared), chain, why) };
}

/// Frees a block: that of one buffer only, or one whose memory somebody waits for.
///
/// # Safety
///
/// The caller has the block, and gives it up.
unsafe fn free(shared: NonNull<Shared>, block: NonNull<Block>) {
    let mut chain = Chain::new();
    // SAFETY: the caller's promise.
    unsafe { chain.push(block) };
    // SAFETY: likewise; of this pool.
    unsafe { Shared::free_chain(shared, chain, Why::Trim) };
}
