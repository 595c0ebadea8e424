//! The shards: where blocks wait for which no thread's cache has room.
//!
//! A shard has a bin for each class: a stack of blocks, behind a word that says how many they are.
//! A thread that moves blocks in or out locks the bin for the few stores that this takes. No other
//! thread waits for that: a locked bin counts as one that has nothing to give and no room, and the
//! next shard is tried.
//!
//! The word, the hint for `trim_idle` and the first slots are one cache line. So blocks on their
//! way from one thread to another cost one line each way, however many they are. Nothing is linked
//! through their headers, which stay where they are.
//!
//! # Invariants
//!
//! - T1: the slots of a bin below its count are blocks of its class that are the bin's (`block`,
//!   K2). In an open bin only the thread that locked it reads and writes them.
//! - T2: a closed bin stays closed, and nothing is put into it any more. The thread that closed it
//!   takes what is in it or, if it was locked at that moment, the thread that locked it does. A
//!   thread that locks it later cannot tell whether that was before, and takes what it finds too.
//!   So each slot is emptied by an exchange. Only holders of a handle take otherwise, so none takes
//!   after the end of the pool.

mod bin;
mod hints;

use alloc::vec::Vec;
use core::ptr::NonNull;

use self::bin::{Bin, FIRST_SLOTS, SEQ_CST, no_block};
use self::hints::Hints;
use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::settings::Settings;
use crate::sync::{AtomicPtr, Ordering};

/// Bins from one shard to the next beyond its own: their lines are fetched in pairs.
const GAP_BINS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 1 };

/// All shards of a pool.
pub(crate) struct Depot {
    /// Shard after shard, class after class, with gaps between shards.
    bins: Vec<Bin>,
    /// The slots of each bin that are not in its first line, `more` for each.
    more_slots: Vec<AtomicPtr<Block>>,
    more: usize,
    /// Bins from one shard to the next.
    stride: usize,
    shards: usize,
    hints: [Hints; MAX_CLASSES],
}

impl Depot {
    /// Empty shards; `None` when there is no memory.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let shards = settings.shards;
        let stride = settings.classes.checked_add(GAP_BINS)?;
        let total = stride.checked_mul(shards)?;
        let most = (0..settings.classes).map(|class| settings.shard_limit(class)).max().unwrap_or(0);
        let more = most.saturating_sub(FIRST_SLOTS);
        let mut bins = Vec::new();
        bins.try_reserve_exact(total).ok()?;
        bins.resize_with(total, Bin::new);
        let mut more_slots = Vec::new();
        more_slots.try_reserve_exact(total.checked_mul(more)?).ok()?;
        more_slots.resize_with(total * more, no_block);
        let hints = core::array::from_fn(|_| Hints::default());
        Some(Self { bins, more_slots, more, stride, shards, hints })
    }

    /// The bin of a class in a shard.
    fn bin(&self, shard: usize, class: usize) -> Option<(&Bin, &[AtomicPtr<Block>])> {
        let index = shard * self.stride + class;
        Some((self.bins.get(index)?, self.more_slots.get(index * self.more..)?.get(..self.more)?))
    }

    /// The shards from `home` on, each with its bit in the hints. (Where there are fewer bits than
    /// shards, some share one.)
    fn from(&self, home: usize) -> impl Iterator<Item = (usize, usize)> {
        // A power of two, as `Settings` has it.
        let mask = self.shards - 1;
        (0..self.shards).map(move |step| {
            let shard = home.wrapping_add(step) & mask;
            (shard, 1_usize.rotate_left(shard as u32))
        })
    }

    /// Puts the blocks that `next` gives into bins of a class with room for `limit` blocks each, in
    /// the shard `home` or else in the next, and returns the rest. `next` does nothing but that: it
    /// is called while a bin is locked.
    ///
    /// Cost: two locked instructions for each bin that takes some; a look at each at the most.
    pub(crate) fn put(
        &self,
        home: usize,
        class: usize,
        limit: usize,
        mut next: impl FnMut() -> Option<NonNull<Block>>,
    ) -> Chain {
        let hints = &self.hints[class];
        // ORDER: Relaxed: a hint. Where it is late, blocks are freed that there was room for, or a
        // search is in vain.
        let full = hints.full.load(Ordering::Relaxed);
        let mut rest = Chain::new();
        let mut over = None;
        for (shard, bit) in self.from(home).filter(|(_, bit)| full & bit == 0) {
            let Some((bin, more)) = self.bin(shard, class) else { break };
            let mut locked = match bin.lock(more) {
                Ok(locked) => locked,
                Err(all) => {
                    rest.append(all);
                    continue;
                }
            };
            if locked.count >= limit {
                // ORDER: Relaxed, as above.
                hints.full.fetch_or(bit, Ordering::Relaxed);
            }
            while locked.count < limit
                && let Some(block) = over.take().or_else(&mut next)
            {
                locked.push(block);
            }
            if let Err(all) = locked.unlock() {
                rest.append(all);
            }
            hints.note_some(bit);
            over = over.or_else(&mut next);
            if over.is_none() {
                return rest;
            }
        }
        while let Some(block) = over.take().or_else(&mut next) {
            // SAFETY: `next` gave it.
            unsafe { rest.push(block) };
        }
        rest
    }

    /// Takes up to `wanted` blocks of a class out of one bin, the newest first, and gives them to
    /// `give`: in the shard `home` if it has any, or else in the next. `give` does nothing but keep
    /// them: it is called while the bin is locked. Returns how many they were. For holders of a
    /// handle.
    ///
    /// Cost: as for `put`.
    pub(crate) fn take(
        &self,
        home: usize,
        class: usize,
        wanted: usize,
        mut give: impl FnMut(NonNull<Block>),
    ) -> usize {
        let hints = &self.hints[class];
        // ORDER: SeqCst, as `note_some` says.
        let some = hints.some.load(SEQ_CST);
        if some == 0 {
            return 0;
        }
        for (shard, bit) in self.from(home).filter(|(_, bit)| some & bit != 0) {
            let Some((bin, more)) = self.bin(shard, class) else { break };
            let Some(mut locked) = bin.lock_open(more) else { continue };
            let mut taken = 0;
            while taken < wanted
                && let Some(block) = locked.pop()
            {
                give(block);
                taken += 1;
            }
            locked.note_least();
            locked.unlock_open();
            if taken > 0 {
                hints.note_room(bit);
                return taken;
            }
            hints.note_none(bit, bin);
        }
        0
    }

    /// Takes up to `wanted` blocks of a class out of all bins, whatever the hints say, and adds
    /// them to `chain`. `false` when a bin was not to be had. For holders of a handle.
    pub(crate) fn take_all(&self, class: usize, wanted: usize, chain: &mut Chain) -> bool {
        let enough = chain.len() + wanted;
        let mut had_all = true;
        for (shard, bit) in self.from(0) {
            let Some((bin, more)) = self.bin(shard, class) else { break };
            if chain.len() >= enough {
                break;
            }
            if bin.count() == 0 {
                continue;
            }
            let Some(mut locked) = bin.lock_open(more) else {
                had_all = false;
                continue;
            };
            while chain.len() < enough
                && let Some(block) = locked.pop()
            {
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
            locked.note_least();
            locked.unlock_open();
            self.hints[class].note_room(bit);
        }
        had_all
    }

    /// Takes the blocks of a class that nobody needed since the last call. For holders of a handle.
    pub(crate) fn take_unused(&self, class: usize) -> Chain {
        let mut unused = Chain::new();
        for (shard, bit) in self.from(0) {
            let Some((bin, more)) = self.bin(shard, class) else { break };
            let Some(mut locked) = bin.lock_open(more) else { continue };
            // ORDER: Relaxed: who has the bin has it.
            for _ in 0..bin.least.load(Ordering::Relaxed) {
                let Some(block) = locked.pop() else { break };
                // SAFETY: just taken.
                unsafe { unused.push(block) };
            }
            // ORDER: Relaxed, likewise.
            bin.least.store(locked.count, Ordering::Relaxed);
            locked.unlock_open();
            self.hints[class].note_room(bit);
        }
        unused
    }

    /// Blocks of a class in all bins, as far as can be seen at this moment without stopping
    /// anybody.
    pub(crate) fn count(&self, class: usize) -> usize {
        // ORDER: SeqCst, as `note_some` says.
        let some = self.hints[class].some.load(SEQ_CST);
        let bins = self.from(0).filter(|(_, bit)| some & bit != 0);
        bins.filter_map(|(shard, _)| self.bin(shard, class)).map(|(bin, _)| bin.count()).sum()
    }

    /// Takes everything, lets nothing in any more, and calls `f` with each bin's.
    pub(crate) fn close(&self, mut f: impl FnMut(Chain)) {
        for shard in 0..self.shards {
            for class in 0..self.stride {
                let Some((bin, more)) = self.bin(shard, class) else { break };
                if let Some(all) = bin.close(more) {
                    f(all);
                }
            }
        }
    }
}
