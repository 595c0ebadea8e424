//! The shards: where blocks wait that no thread's cache has room for.
//!
//! A shard has a rack for each class: a stack of blocks, behind a word that says how many they are. Who moves blocks in or out locks the
//! rack for the few stores that this takes. Nobody waits for that: a locked rack counts as one that has nothing to give and no room, and
//! the next shard is tried. The word, the hint for `trim_idle` and the first slots are one cache line, so that blocks on their way from
//! one thread to another cost one line each way, however many they are; nothing is linked through their headers, which stay where they
//! are.
//!
//! # Invariants
//!
//! - T1: the slots of a rack below its count are blocks of its class that are the rack's (`block`, K2). Of an open rack they are read and
//!   written by who locked it.
//! - T2: a closed rack stays closed, and nothing is put into it any more. What is in it is taken by who closed it or, if it was locked at
//!   that moment, by who locked it; who locks it later cannot tell whether that was before, and takes what he finds too. So each slot is
//!   emptied by an exchange. Only holders of a handle take otherwise, so none takes after the end of the pool.

use alloc::vec::Vec;
use core::ptr::{self, NonNull};

use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::config::Settings;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The last bits of a rack's word: somebody moves blocks; the pool is gone. Above them is the count.
const LOCKED: usize = 1;
const CLOSED: usize = 2;
const ONE: usize = 4;

/// The order of what gives a rack blocks, and of the hints about that.
// ORDER: what each pairs with is said where it is used.
const SEQ_CST: Ordering = Ordering::SeqCst;

/// Slots in a rack's first cache line.
const FIRST_SLOTS: usize = 6;

/// Racks from one shard to the next beyond its own: their lines are fetched in pairs.
const GAP_RACKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 1 };

/// All shards of a pool.
pub(crate) struct Stock {
    /// Shard after shard, class after class, with gaps between shards.
    racks: Vec<Rack>,
    /// The slots of each rack that are not in its first line, `more` for each.
    more_slots: Vec<AtomicPtr<Block>>,
    more: usize,
    /// Racks from one shard to the next.
    stride: usize,
    shards: usize,
    hints: [Hints; MAX_CLASSES],
}

/// What a search among the racks of a class may leave out: a bit for each shard.
///
/// Bits change only when a search has found them wrong, so that in the long run nobody writes here.
struct Hints {
    /// There may be blocks.
    some: AtomicUsize,
    /// There is no room.
    full: AtomicUsize,
}

/// The blocks of a class in a shard.
#[repr(C, align(64))]
struct Rack {
    word: AtomicUsize,
    /// The least that the count was since `trim_idle` last looked. For who has the rack.
    least: AtomicUsize,
    slots: [AtomicPtr<Block>; FIRST_SLOTS],
}

/// A rack that the holder of this locked: it has `count` blocks. Forgetting it leaves it locked.
struct Locked<'a> {
    rack: &'a Rack,
    more: &'a [AtomicPtr<Block>],
    /// What its word is until it is closed.
    word: usize,
    count: usize,
}

fn no_block() -> AtomicPtr<Block> {
    AtomicPtr::new(ptr::null_mut())
}

impl Stock {
    /// Empty shards; `None` when there is no memory.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let shards = settings.shards;
        let stride = settings.classes.checked_add(GAP_RACKS)?;
        let total = stride.checked_mul(shards)?;
        let most = (0..settings.classes).map(|class| settings.shard_limit(class)).max().unwrap_or(0);
        let more = most.saturating_sub(FIRST_SLOTS);
        let mut racks = Vec::new();
        racks.try_reserve_exact(total).ok()?;
        racks.resize_with(total, Rack::new);
        let mut more_slots = Vec::new();
        more_slots.try_reserve_exact(total.checked_mul(more)?).ok()?;
        more_slots.resize_with(total * more, no_block);
        let hints = || Hints { some: AtomicUsize::new(0), full: AtomicUsize::new(0) };
        Some(Self { racks, more_slots, more, stride, shards, hints: core::array::from_fn(|_| hints()) })
    }

    /// The rack of a class in a shard.
    fn rack(&self, shard: usize, class: usize) -> Option<(&Rack, &[AtomicPtr<Block>])> {
        let index = shard * self.stride + class;
        Some((self.racks.get(index)?, self.more_slots.get(index * self.more..)?.get(..self.more)?))
    }

    /// The shards from `home` on, each with its bit in the hints. (Where there are fewer bits than shards, some share one.)
    fn from(&self, home: usize) -> impl Iterator<Item = (usize, usize)> {
        // A power of two, as `Settings` has it.
        let mask = self.shards - 1;
        (0..self.shards).map(move |step| {
            let shard = home.wrapping_add(step) & mask;
            (shard, 1_usize.rotate_left(shard as u32))
        })
    }

    /// Puts the blocks that `next` gives into racks of a class with room for `limit` blocks each, in the shard `home` or else in the
    /// next, and returns the rest. `next` does nothing but that: it is called while a rack is locked.
    ///
    /// Cost: two locked instructions for each rack that takes some; a look at each at the most.
    pub(crate) fn put(
        &self,
        home: usize,
        class: usize,
        limit: usize,
        mut next: impl FnMut() -> Option<NonNull<Block>>,
    ) -> Chain {
        let hints = &self.hints[class];
        // ORDER: Relaxed: a hint. Where it is late, blocks are freed that there was room for, or a search is in vain.
        let full = hints.full.load(Ordering::Relaxed);
        let mut rest = Chain::new();
        let mut over = None;
        for (shard, bit) in self.from(home).filter(|(_, bit)| full & bit == 0) {
            let Some((rack, more)) = self.rack(shard, class) else { break };
            let mut locked = match rack.lock(more) {
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

    /// Takes up to `wanted` blocks of a class out of one rack, the newest first, and gives them to `give`: in the shard `home` if it has
    /// any, or else in the next. `give` does nothing but keep them: it is called while the rack is locked. Returns how many they were.
    /// For holders of a handle.
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
            let Some((rack, more)) = self.rack(shard, class) else { break };
            let Some(mut locked) = rack.lock_open(more) else { continue };
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
            hints.note_none(bit, rack);
        }
        0
    }

    /// Takes up to `wanted` blocks of a class out of all racks, whatever the hints say, and adds them to `chain`. `false` when a rack was
    /// not to be had. For holders of a handle.
    pub(crate) fn take_all(&self, class: usize, wanted: usize, chain: &mut Chain) -> bool {
        let enough = chain.len() + wanted;
        let mut had_all = true;
        for (shard, bit) in self.from(0) {
            let Some((rack, more)) = self.rack(shard, class) else { break };
            if chain.len() >= enough {
                break;
            }
            if rack.count() == 0 {
                continue;
            }
            let Some(mut locked) = rack.lock_open(more) else {
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
            let Some((rack, more)) = self.rack(shard, class) else { break };
            let Some(mut locked) = rack.lock_open(more) else { continue };
            // ORDER: Relaxed: who has the rack has it.
            for _ in 0..rack.least.load(Ordering::Relaxed) {
                let Some(block) = locked.pop() else { break };
                // SAFETY: just taken.
                unsafe { unused.push(block) };
            }
            // ORDER: Relaxed, likewise.
            rack.least.store(locked.count, Ordering::Relaxed);
            locked.unlock_open();
            self.hints[class].note_room(bit);
        }
        unused
    }

    /// Blocks of a class in all racks, as far as can be seen at this moment without stopping anybody.
    pub(crate) fn count(&self, class: usize) -> usize {
        // ORDER: SeqCst, as `note_some` says.
        let some = self.hints[class].some.load(SEQ_CST);
        let racks = self.from(0).filter(|(_, bit)| some & bit != 0);
        racks.filter_map(|(shard, _)| self.rack(shard, class)).map(|(rack, _)| rack.count()).sum()
    }

    /// Takes everything, lets nothing in any more, and calls `f` with each rack's.
    pub(crate) fn close(&self, mut f: impl FnMut(Chain)) {
        for shard in 0..self.shards {
            for class in 0..self.stride {
                let Some((rack, more)) = self.rack(shard, class) else { break };
                // ORDER: Acquire pairs with the Release in `unlock`; nothing is published.
                let before = rack.word.fetch_or(CLOSED, Ordering::Acquire);
                if before & LOCKED == 0 {
                    f(Locked { rack, more, word: before, count: before / ONE }.take_closed());
                }
            }
        }
    }
}

impl Hints {
    /// A rack was given blocks.
    fn note_some(&self, bit: usize) {
        // ORDER: SeqCst here, in `note_none` and for the count in `unlock` and `Rack::count`: of who gives blocks and who found none the
        // one sees the other, and the bit is set in the end. Otherwise a rack might not be looked into until it is given more.
        if self.some.load(SEQ_CST) & bit == 0 {
            self.some.fetch_or(bit, SEQ_CST);
        }
    }

    /// A rack was found empty.
    fn note_none(&self, bit: usize, rack: &Rack) {
        // ORDER: SeqCst, as `note_some` says.
        self.some.fetch_and(!bit, SEQ_CST);
        if rack.count() > 0 {
            // ORDER: SeqCst, likewise.
            self.some.fetch_or(bit, SEQ_CST);
        }
    }

    /// Blocks were taken out of a rack.
    fn note_room(&self, bit: usize) {
        // ORDER: Relaxed, for both: a hint.
        if self.full.load(Ordering::Relaxed) & bit != 0 {
            self.full.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

impl Rack {
    fn new() -> Self {
        Self {
            word: AtomicUsize::new(0),
            least: AtomicUsize::new(0),
            slots: core::array::from_fn(|_| no_block()),
        }
    }

    /// Blocks in it, at some moment.
    fn count(&self) -> usize {
        // ORDER: SeqCst, as `Hints::note_some` says.
        self.word.load(SEQ_CST) / ONE
    }

    /// The rack, unless it is locked.
    ///
    /// Without a look first, which would fetch the line once to read it and once more to write it; and only the bit is asked for, which is
    /// one instruction where the whole word would be a loop.
    ///
    /// # Errors
    ///
    /// When the rack is locked: nothing. When it is closed: all that is in it, which is the caller's (T2).
    fn lock<'a>(&'a self, more: &'a [AtomicPtr<Block>]) -> Result<Locked<'a>, Chain> {
        // ORDER: Acquire pairs with the Release in `unlock`: what was done with the blocks, and in the slots, happened before.
        if self.word.fetch_or(LOCKED, Ordering::Acquire) & LOCKED != 0 {
            return Err(Chain::new());
        }
        // ORDER: Relaxed: the count is what the last one left who had the rack. Whether it was closed before or after this locked it does
        // not matter (T2).
        let word = self.word.load(Ordering::Relaxed);
        let locked = Locked { rack: self, more, word, count: word / ONE };
        if word & CLOSED == 0 { Ok(locked) } else { Err(locked.take_closed()) }
    }
}

impl Rack {
    /// As `lock`, for holders of a handle, so not of a closed rack.
    fn lock_open<'a>(&'a self, more: &'a [AtomicPtr<Block>]) -> Option<Locked<'a>> {
        let locked = self.lock(more);
        debug_assert!(locked.as_ref().err().is_none_or(Chain::is_empty), "T2: the pool has a handle");
        locked.ok()
    }
}

impl Locked<'_> {
    fn slot(&self, index: usize) -> Option<&AtomicPtr<Block>> {
        self.rack.slots.get(index).or_else(|| self.more.get(index - FIRST_SLOTS))
    }

    /// Adds a block, for which there is room.
    fn push(&mut self, block: NonNull<Block>) {
        if let Some(slot) = self.slot(self.count) {
            // ORDER: Relaxed: the lock orders it (T1).
            slot.store(block.as_ptr(), Ordering::Relaxed);
            self.count += 1;
        }
    }

    /// Takes the newest block.
    fn pop(&mut self) -> Option<NonNull<Block>> {
        let newest = self.count.checked_sub(1)?;
        // ORDER: Relaxed: the lock orders it (T1).
        let block = self.slot(newest)?.load(Ordering::Relaxed);
        self.count = newest;
        NonNull::new(block)
    }

    /// Notes the count for `trim_idle`.
    fn note_least(&self) {
        // ORDER: Relaxed, for both: the lock orders them (T1).
        if self.count < self.rack.least.load(Ordering::Relaxed) {
            self.rack.least.store(self.count, Ordering::Relaxed);
        }
    }

    /// All that is in a closed rack (T2).
    fn take_closed(self) -> Chain {
        let mut chain = Chain::new();
        for slot in (0..self.count).filter_map(|index| self.slot(index)) {
            // ORDER: Acquire, and Release with it, since two may come here: what one finds, the other does not.
            if let Some(block) = NonNull::new(slot.swap(ptr::null_mut(), Ordering::AcqRel)) {
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
        }
        chain
    }

    /// Ends what `lock_open` began.
    ///
    /// By an exchange too, though nobody but the holder writes the word of an open rack that is locked, other than to set the bit that is
    /// set: a plain store would be enough, but loom does not see that it comes after those.
    fn unlock_open(self) {
        let unlocked = self.unlock();
        debug_assert!(unlocked.is_ok(), "T2: the pool has a handle");
    }

    /// Ends what `lock` began.
    ///
    /// # Errors
    ///
    /// When the rack was closed meanwhile: all that is in it, which is the caller's (T2).
    fn unlock(self) -> Result<(), Chain> {
        // ORDER: Release pairs with the Acquire in `lock` and `close`. SeqCst for `Hints::note_some`. A failure takes nothing that it did
        // not have.
        match self.rack.word.compare_exchange(self.word, self.count * ONE, SEQ_CST, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_closed) => Err(self.take_closed()),
        }
    }
}
