//! The shards: where blocks wait for which no thread's cache has room.
//!
//! A shard has a bin for each class: a stack of blocks, behind a word that says how many they are.
//! A thread that moves blocks in or out locks the bin for the few stores that this takes. No other
//! thread waits for that: a locked bin counts as one that has nothing to give and no room, and the
//! next shard is tried.
//!
//! The word, the hint for `trim_idle` and the first slots are one cache line and the one behind it.
//! So blocks on their way from one thread to another cost these lines each way, however many they
//! are. Nothing is linked through their headers, which stay where they are.
//!
//! A pool of many classes and shards mostly needs few bins. So the bins of a class are made when a
//! block of it is first requested: for the first shards, with room for a few blocks, of a large
//! class for one. The other shards and slots are made when a bin of these was too small, by the
//! next request that comes to the depot. So releases allocate nothing. Of a first burst
//! little is kept; what comes again is.
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
//! - T3: the bins of a class and their rest are made once, by holders of a handle, and stay as long
//!   as the depot. A thread looks for the rest of the slots when it has the bin. So it finds them
//!   if any thread that had the bin before used them.

mod bin;
mod bin_bitmap;
mod class_bins;
#[cfg(not(any(loom, shuttle)))]
mod lazy_array;
// Atomics of the model checkers have more to them than bytes.
#[cfg(any(loom, shuttle))]
#[path = "model_array.rs"]
mod lazy_array;

use core::ptr::{self, NonNull};

use self::bin::SEQ_CST;
use self::class_bins::ClassBins;
use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::settings::Settings;
use crate::sync::{AtomicPtr, Ordering};

/// All shards of a pool.
pub(crate) struct Depot {
    /// The bins of each class, or null until they are made (T3).
    classes: [AtomicPtr<ClassBins>; MAX_CLASSES],
}

impl Depot {
    /// Makes a depot of empty shards.
    pub(crate) fn new() -> Self {
        Self { classes: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }

    /// Returns the bins of a class, if they were made.
    fn class_bins(&self, class: usize) -> Option<&ClassBins> {
        ClassBins::of(self.classes.get(class)?)
    }

    /// Makes the bins of a class that are missing, if there is memory: those that a first block may
    /// need, or all when these were too small. The caller holds a handle, and has nothing locked or
    /// entered.
    pub(crate) fn prepare(&self, settings: &Settings, class: usize) {
        match self.class_bins(class) {
            Some(class_bins) if class_bins.is_short() => {
                // Without memory, there is room for fewer.
                let _ = class_bins.make_rest(settings, class);
            }
            Some(_) => {}
            None if settings.shard_limit(class) > 0 => ClassBins::make(&self.classes[class], settings, class),
            None => {}
        }
    }

    /// Makes all bins of a class. Returns `false` when there is no memory. For those as in
    /// `prepare`.
    pub(crate) fn prepare_all(&self, settings: &Settings, class: usize) -> bool {
        self.prepare(settings, class);
        let has_all = self.class_bins(class).is_some_and(|class_bins| class_bins.make_rest(settings, class));
        has_all || settings.shard_limit(class) == 0
    }

    /// Puts the blocks that `next` gives into bins of a class with room for `limit` blocks each, in
    /// the shard `home` or else in the next, and returns the rest. `next` gives blocks that are
    /// valid and the caller's, and does nothing but that: it is called while a bin is locked.
    ///
    /// Cost: two locked instructions for each bin that takes some; at most a look at each.
    pub(crate) fn put(
        &self,
        home: usize,
        class: usize,
        limit: usize,
        mut next: impl FnMut() -> Option<NonNull<Block>>,
    ) -> Chain {
        let mut rest = Chain::new();
        let Some(class_bins) = self.class_bins(class) else {
            chain_up(&mut rest, next);
            return rest;
        };
        let bitmap = &class_bins.bitmap;
        // ORDER: Relaxed: a hint. Where it is late, blocks are freed that there was room for, or a
        // search is in vain.
        let full = bitmap.full.load(Ordering::Relaxed);
        // Slots that are there now are there when a bin is locked (T3).
        let here = limit.min(class_bins.room());
        let mut over = None;
        for (shard, bit) in class_bins.from(home).filter(|(_, bit)| full & bit == 0) {
            let Some(place) = class_bins.at(shard) else { break };
            let mut locked = match place.lock() {
                Ok(locked) => locked,
                Err(all) => {
                    rest.append(all);
                    continue;
                }
            };
            if locked.count >= here {
                // ORDER: Relaxed, as above.
                bitmap.full.fetch_or(bit, Ordering::Relaxed);
            }
            while locked.count < here
                && let Some(block) = over.take().or_else(&mut next)
            {
                locked.push(block);
            }
            if let Err(all) = locked.unlock() {
                rest.append(all);
            }
            bitmap.note_some(bit);
            over = over.or_else(&mut next);
            if over.is_none() {
                return rest;
            }
            if here < limit {
                // In one bin, another thread finds all of them at once.
                class_bins.note_short();
            }
        }
        chain_up(&mut rest, || over.take().or_else(&mut next));
        if !rest.is_empty() {
            class_bins.note_short();
        }
        rest
    }

    /// Takes up to `wanted` blocks of a class out of one bin, the newest first, and gives them to
    /// `give`: in the shard `home` if it has any, or else in the next. `give` does nothing but keep
    /// them: it is called while the bin is locked. Returns whether the class lacks bins, which
    /// `prepare` makes. The caller holds a handle.
    ///
    /// Cost: as for `put`.
    pub(crate) fn take(
        &self,
        home: usize,
        class: usize,
        wanted: usize,
        mut give: impl FnMut(NonNull<Block>),
    ) -> bool {
        let Some(class_bins) = self.class_bins(class) else { return true };
        let bitmap = &class_bins.bitmap;
        // ORDER: SeqCst, as `note_some` says.
        let some = bitmap.some.load(SEQ_CST);
        if some == 0 {
            return class_bins.is_short();
        }
        for (shard, bit) in class_bins.from(home).filter(|(_, bit)| some & bit != 0) {
            let Some(place) = class_bins.at(shard) else { break };
            let Some(mut locked) = place.lock_open() else { continue };
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
                bitmap.note_room(bit);
                break;
            }
            bitmap.note_none(bit, place.bin);
        }
        class_bins.is_short()
    }

    /// Takes up to `wanted` blocks of a class out of all bins, whatever the hints say, and adds
    /// them to `chain`. Returns `false` when a bin was not to be had. The caller holds a handle.
    pub(crate) fn take_all(&self, class: usize, wanted: usize, chain: &mut Chain) -> bool {
        let Some(class_bins) = self.class_bins(class) else { return true };
        let enough = chain.len() + wanted;
        let mut had_all = true;
        for (shard, bit) in class_bins.from(0) {
            let Some(place) = class_bins.at(shard) else { break };
            if chain.len() >= enough {
                break;
            }
            if place.bin.count() == 0 {
                continue;
            }
            let Some(mut locked) = place.lock_open() else {
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
            class_bins.bitmap.note_room(bit);
        }
        had_all
    }

    /// Takes the blocks of a class that nobody needed since the last call. The caller holds a
    /// handle.
    pub(crate) fn take_unused(&self, class: usize) -> Chain {
        let mut unused = Chain::new();
        let Some(class_bins) = self.class_bins(class) else { return unused };
        for (shard, bit) in class_bins.from(0) {
            let Some(place) = class_bins.at(shard) else { break };
            let bin = place.bin;
            // The last who took from it noted that it had nothing left. So a bin that was never
            // used stays memory that the system has not given.
            if bin.count() == 0 {
                continue;
            }
            let Some(mut locked) = place.lock_open() else { continue };
            // ORDER: Relaxed: who has the bin has it.
            for _ in 0..bin.least.load(Ordering::Relaxed) {
                let Some(block) = locked.pop() else { break };
                // SAFETY: just taken.
                unsafe { unused.push(block) };
            }
            // ORDER: Relaxed, likewise.
            bin.least.store(locked.count, Ordering::Relaxed);
            locked.unlock_open();
            class_bins.bitmap.note_room(bit);
        }
        unused
    }

    /// Counts the blocks of a class in all bins, as far as can be seen at this moment without
    /// stopping anybody.
    pub(crate) fn count(&self, class: usize) -> usize {
        let Some(class_bins) = self.class_bins(class) else { return 0 };
        // ORDER: SeqCst, as `note_some` says.
        let some = class_bins.bitmap.some.load(SEQ_CST);
        let bins = class_bins.from(0).filter(|(_, bit)| some & bit != 0);
        bins.filter_map(|(shard, _)| class_bins.at(shard)).map(|place| place.bin.count()).sum()
    }

    /// Returns for how many blocks of a class all bins that were made have room together, as far as
    /// can be seen at this moment.
    pub(crate) fn room(&self, class: usize, limit: usize) -> usize {
        let Some(class_bins) = self.class_bins(class) else { return 0 };
        let bins = (0..class_bins.shards()).filter_map(|shard| class_bins.at(shard));
        let here = limit.min(class_bins.room());
        bins.map(|place| here.saturating_sub(place.bin.count())).sum()
    }

    /// Takes everything, lets nothing in any more, and calls `f` with each bin's.
    pub(crate) fn close(&self, mut f: impl FnMut(Chain)) {
        for class_bins in (0..MAX_CLASSES).filter_map(|class| self.class_bins(class)) {
            let places = (0..class_bins.shards()).filter_map(|shard| class_bins.at(shard));
            places.filter_map(class_bins::BinRef::close).for_each(&mut f);
        }
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        for class_bins in &self.classes {
            // ORDER: Relaxed: whoever has the depot alone has seen all that was done with it.
            class_bins::free(class_bins.load(Ordering::Relaxed));
        }
    }
}

/// Adds the blocks that `next` gives to a chain.
fn chain_up(chain: &mut Chain, mut next: impl FnMut() -> Option<NonNull<Block>>) {
    while let Some(block) = next() {
        // SAFETY: valid and the caller's, as `next` of `Depot::put` says.
        unsafe { chain.push(block) };
    }
}
