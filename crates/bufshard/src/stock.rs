//! The shards: where blocks wait that no thread's cache has room for, in chains that go in and out as a whole.
//!
//! # Invariants
//!
//! - T1: a slot holds nothing, a whole chain, or the mark of a closed pool. What an exchange takes out of a slot is the caller's alone;
//!   nobody looks into a block that is in a slot. So an address that comes back in between harms nobody, and nobody waits.
//! - T2: a closed slot stays closed: only holders of a handle take, so none takes after the end of the pool.

use alloc::vec::Vec;
use core::ptr;

use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::config::Settings;
use crate::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE};

/// Slots between two shards, so that they share no cache lines: two lines, since they are fetched in pairs.
const GAP_SLOTS: usize = if cfg!(loom) { 0 } else { 16 };

/// All shards of a pool.
pub(crate) struct Stock {
    /// `shards` times `classes` times `chains`, with gaps.
    slots: Vec<AtomicPtr<Block>>,
    /// For each class of each shard, about how many of its slots from the first on are taken: where to look first.
    heights: Vec<AtomicU32>,
    /// Slots from one shard to the next.
    stride: usize,
    /// Heights from one shard to the next.
    height_stride: usize,
    /// Slots of a class in a shard.
    chains: usize,
    /// Minus one, for a number that is a power of two.
    shard_mask: usize,
    /// Chains of each class in all shards, about: a request looks for one only where there seem to be any.
    counts: [AtomicUsize; MAX_CLASSES],
    /// The least that each count was since `trim_idle` last looked.
    least: [AtomicUsize; MAX_CLASSES],
}

/// What is in a slot of a pool that is gone.
fn closed() -> *mut Block {
    ptr::without_provenance_mut(1)
}

impl Stock {
    /// Empty shards; `None` when there is no memory.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let (shards, chains) = (settings.shards, settings.chains);
        let used = settings.classes.checked_mul(chains)?;
        let stride = used.checked_next_multiple_of(GAP_SLOTS.max(1))?.checked_add(GAP_SLOTS)?;
        let total = stride.checked_mul(shards)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(total).ok()?;
        slots.extend((0..total).map(|_| AtomicPtr::new(ptr::null_mut())));
        let gap = GAP_SLOTS * (size_of::<AtomicPtr<Block>>() / size_of::<AtomicU32>());
        let height_stride = settings.classes.checked_next_multiple_of(gap.max(1))?.checked_add(gap)?;
        let mut heights = Vec::new();
        heights.try_reserve_exact(height_stride.checked_mul(shards)?).ok()?;
        heights.extend((0..height_stride * shards).map(|_| AtomicU32::new(0)));
        Some(Self {
            slots,
            heights,
            height_stride,
            stride,
            chains,
            shard_mask: shards - 1,
            counts: core::array::from_fn(|_| AtomicUsize::new(0)),
            least: core::array::from_fn(|_| AtomicUsize::new(0)),
        })
    }

    /// The slots of a class and their height, shard after shard, from `home` on.
    fn shards(&self, home: usize, class: usize, chains: usize) -> impl Iterator<Item = Slots<'_>> {
        (0..=self.shard_mask).filter_map(move |shard| {
            let shard = (home + shard) & self.shard_mask;
            let start = shard * self.stride + class * self.chains;
            let slots = self.slots.get(start..start + chains)?;
            let height = self.heights.get(shard * self.height_stride + class)?;
            Some(Slots { slots, height })
        })
    }

    /// Puts a chain of one block at least into a slot, in the shard `home` or else in the next; gives it back when all are taken.
    ///
    /// Cost: a look or two, while few are about it at once; a look at each slot at the most.
    pub(crate) fn put(&self, home: usize, class: usize, chains: usize, chain: Chain) -> Result<(), Chain> {
        // ORDER: Relaxed: a hint. Where it is late, a chain is freed that there was room for, or a search is in vain.
        let count = self.counts[class].load(Ordering::Relaxed);
        if count >= chains * (self.shard_mask + 1) && count <= isize::MAX as usize {
            return Err(chain);
        }
        let first = chain.into_first();
        for shard in self.shards(home, class, chains) {
            for (index, slot) in shard.upwards() {
                // ORDER: Relaxed: a look that saves the exchange.
                if !slot.load(Ordering::Relaxed).is_null() {
                    continue;
                }
                // ORDER: Release pairs with the Acquire in `take` and `close`: what was done with the blocks happened before they are
                // used again. A failure publishes nothing.
                let exchange =
                    slot.compare_exchange(ptr::null_mut(), first.cast_mut(), RELEASE, Ordering::Relaxed);
                if exchange.is_ok() {
                    shard.set_height(index + 1);
                    // ORDER: Relaxed: a count that may be late.
                    self.counts[class].fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
        // SAFETY: taken apart above, and put into no slot.
        Err(unsafe { Chain::from_first(first) })
    }

    /// Takes a chain of a class, the newest if nobody is in the way, from the shard `home` or else from the next; an empty one when there is
    /// none. For holders of a handle.
    ///
    /// Cost: as for `put`.
    pub(crate) fn take(&self, home: usize, class: usize, chains: usize) -> Chain {
        // ORDER: Relaxed: a hint. Where it is late, a block is allocated that need not be, or a search is in vain.
        let count = self.counts[class].load(Ordering::Relaxed);
        if count == 0 || count > isize::MAX as usize {
            return Chain::new();
        }
        for shard in self.shards(home, class, chains) {
            for (index, slot) in shard.downwards() {
                // ORDER: Relaxed: a look that saves the exchange.
                if slot.load(Ordering::Relaxed).is_null() {
                    continue;
                }
                // ORDER: Acquire pairs with the Release in `put`.
                let first = slot.swap(ptr::null_mut(), Ordering::Acquire);
                debug_assert!(first != closed(), "T2: taken after the end of the pool");
                if !first.is_null() {
                    shard.set_height(index);
                    // ORDER: Relaxed, for all: counts that may be late.
                    let left = self.counts[class].fetch_sub(1, Ordering::Relaxed).wrapping_sub(1);
                    if left < self.least[class].load(Ordering::Relaxed) {
                        self.least[class].store(left, Ordering::Relaxed);
                    }
                    // SAFETY: `put` left it there, and the exchange made it ours (T1).
                    return unsafe { Chain::from_first(first) };
                }
            }
        }
        Chain::new()
    }

    /// Chains of a class that nobody needed since the last call, about.
    pub(crate) fn unused(&self, class: usize) -> usize {
        // ORDER: Relaxed, for all: counts that may be late.
        let count = self.counts[class].load(Ordering::Relaxed);
        let least = self.least[class].swap(count, Ordering::Relaxed);
        if count > isize::MAX as usize { 0 } else { least.min(count) }
    }

    /// Takes everything, lets nothing in any more, and calls `f` with each chain.
    pub(crate) fn close(&self, mut f: impl FnMut(Chain)) {
        for slot in &self.slots {
            // ORDER: Acquire pairs with the Release in `put`; nothing is published.
            let first = slot.swap(closed(), Ordering::Acquire);
            if first != closed() {
                // SAFETY: `put` left it there, and the exchange made it ours (T1).
                f(unsafe { Chain::from_first(first) });
            }
        }
    }
}

/// The slots of a class in a shard: a stack as long as one thread at a time is about it, since each looks first where the last one was.
/// Others may be in between; then all slots are looked at, and the height is only late.
struct Slots<'a> {
    slots: &'a [AtomicPtr<Block>],
    height: &'a AtomicU32,
}

impl<'a> Slots<'a> {
    fn height(&self) -> usize {
        // ORDER: Relaxed: a hint.
        (self.height.load(Ordering::Relaxed) as usize).min(self.slots.len())
    }

    fn set_height(&self, height: usize) {
        // ORDER: Relaxed: a hint. It fits: slots are at most as many as a shard may have buffers.
        self.height.store(height as u32, Ordering::Relaxed);
    }

    /// From the height on, and then the others.
    fn upwards(&self) -> impl Iterator<Item = (usize, &'a AtomicPtr<Block>)> {
        let (below, above) = self.slots.split_at(self.height());
        let height = below.len();
        let above = above.iter().enumerate().map(move |(index, slot)| (height + index, slot));
        above.chain(below.iter().enumerate().rev())
    }

    /// From below the height down, and then the others.
    fn downwards(&self) -> impl Iterator<Item = (usize, &'a AtomicPtr<Block>)> {
        let (below, above) = self.slots.split_at(self.height());
        let height = below.len();
        let above = above.iter().enumerate().map(move |(index, slot)| (height + index, slot));
        below.iter().enumerate().rev().chain(above)
    }
}
