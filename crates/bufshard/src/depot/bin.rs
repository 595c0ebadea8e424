//! One bin of a shard: the blocks of a class, behind a word that says how many they are (`depot`,
//! T1 and T2).

use core::ptr::{self, NonNull};

use crate::block::Block;
use crate::chain::Chain;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// The last bits of a bin's word: somebody moves blocks; the pool is gone. Above them is the count.
const LOCKED: usize = 1;
const CLOSED: usize = 2;
const ONE: usize = 4;

/// The order of what gives a bin blocks, and of the hints about that.
// ORDER: what each pairs with is said where it is used.
pub(super) const SEQ_CST: Ordering = Ordering::SeqCst;

/// Slots beside a bin's word, in two cache lines, which are fetched in pairs. Models have few.
pub(super) const FIRST_SLOTS: usize =
    if cfg!(any(loom, shuttle)) { 6 } else { BIN_BYTES / size_of::<usize>() - 2 };
const BIN_BYTES: usize = 128;

/// The blocks of a class in a shard.
#[repr(C, align(128))]
pub(super) struct Bin {
    word: AtomicUsize,
    /// The least that the count was since `trim_idle` last looked. The caller has the bin.
    pub(super) least: AtomicUsize,
    slots: [AtomicPtr<Block>; FIRST_SLOTS],
}

/// A bin that the holder of this locked: it has `count` blocks. Forgetting it leaves it locked.
pub(super) struct Locked<'a> {
    bin: &'a Bin,
    more: &'a [AtomicPtr<Block>],
    /// What its word is until it is closed.
    word: usize,
    pub(super) count: usize,
}

impl Bin {
    /// Makes an empty bin, which is all zeros.
    #[cfg(any(loom, shuttle))]
    pub(super) fn new() -> Self {
        Self {
            word: AtomicUsize::new(0),
            least: AtomicUsize::new(0),
            slots: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Counts the blocks in the bin, at some moment.
    pub(super) fn count(&self) -> usize {
        // ORDER: SeqCst, as `BinBitmap::note_some` says.
        self.word.load(SEQ_CST) / ONE
    }

    /// Locks the bin, unless it is locked.
    ///
    /// It does not look first: a look would fetch the line once to read it and once more to write
    /// it. It asks for the bit only, which is one instruction where the whole word would be a loop.
    ///
    /// # Errors
    ///
    /// When the bin is locked, the error is an empty chain. When it is closed, the error has all
    /// that is in it, which is the caller's (T2).
    pub(super) fn lock<'a>(
        &'a self,
        more: impl FnOnce() -> &'a [AtomicPtr<Block>],
    ) -> Result<Locked<'a>, Chain> {
        // ORDER: Acquire pairs with the Release in `unlock`: what was done with the blocks, and in
        // the slots, happened before.
        if self.word.fetch_or(LOCKED, Ordering::Acquire) & LOCKED != 0 {
            return Err(Chain::new());
        }
        // ORDER: Relaxed: the count is what the last one left who had the bin. Whether it was
        // closed before or after this locked it does not matter (T2).
        let word = self.word.load(Ordering::Relaxed);
        // Looked for now: whoever used them before, and had the bin, saw them (T3).
        let locked = Locked { bin: self, more: more(), word, count: word / ONE };
        if word & CLOSED == 0 { Ok(locked) } else { Err(locked.take_closed()) }
    }

    /// Lets nothing in any more, and takes all that is in it; `None` while it is locked, and then
    /// who locked it takes that (T2).
    pub(super) fn close<'a>(&'a self, more: impl FnOnce() -> &'a [AtomicPtr<Block>]) -> Option<Chain> {
        // ORDER: Acquire pairs with the Release in `unlock`; nothing is published.
        let before = self.word.fetch_or(CLOSED, Ordering::Acquire);
        if before & LOCKED != 0 {
            return None;
        }
        Some(Locked { bin: self, more: more(), word: before, count: before / ONE }.take_closed())
    }
}

impl Locked<'_> {
    fn slot(&self, index: usize) -> Option<&AtomicPtr<Block>> {
        self.bin.slots.get(index).or_else(|| self.more.get(index - FIRST_SLOTS))
    }

    /// Adds a block, for which there is room.
    pub(super) fn push(&mut self, block: NonNull<Block>) {
        if let Some(slot) = self.slot(self.count) {
            // ORDER: Relaxed: the lock orders it (T1).
            slot.store(block.as_ptr(), Ordering::Relaxed);
            self.count += 1;
        }
    }

    /// Takes the newest block.
    pub(super) fn pop(&mut self) -> Option<NonNull<Block>> {
        let newest = self.count.checked_sub(1)?;
        // ORDER: Relaxed: the lock orders it (T1).
        let block = self.slot(newest)?.load(Ordering::Relaxed);
        self.count = newest;
        NonNull::new(block)
    }

    /// Notes the count for `trim_idle`.
    pub(super) fn note_least(&self) {
        // ORDER: Relaxed, for both: the lock orders them (T1).
        if self.count < self.bin.least.load(Ordering::Relaxed) {
            self.bin.least.store(self.count, Ordering::Relaxed);
        }
    }

    /// Takes all that is in a closed bin (T2).
    pub(super) fn take_closed(self) -> Chain {
        let mut chain = Chain::new();
        for slot in (0..self.count).filter_map(|index| self.slot(index)) {
            // ORDER: Acquire, and Release with it, since two may come here: what one finds, the
            // other does not.
            if let Some(block) = NonNull::new(slot.swap(ptr::null_mut(), Ordering::AcqRel)) {
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
        }
        chain
    }

    /// Ends what `lock_open` began.
    ///
    /// By an exchange too, though nobody but the holder writes the word of an open bin that is
    /// locked, other than to set the bit that is set: a plain store would be enough, but loom does
    /// not see that it comes after those.
    pub(super) fn unlock_open(self) {
        let unlocked = self.unlock();
        debug_assert!(unlocked.is_ok(), "T2: the pool has a handle");
    }

    /// Ends what `lock` began.
    ///
    /// # Errors
    ///
    /// When the bin was closed meanwhile: all that is in it, which is the caller's (T2).
    pub(super) fn unlock(self) -> Result<(), Chain> {
        // ORDER: Release pairs with the Acquire in `lock` and `close`. SeqCst for
        // `BinBitmap::note_some`. A failure takes nothing that it did not have.
        match self.bin.word.compare_exchange(self.word, self.count * ONE, SEQ_CST, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_closed) => Err(self.take_closed()),
        }
    }
}
