//! The bins of a class in a depot, made when the class is first needed. First it has a bin with
//! room for a few blocks in each of the first shards. It gets the rest when these were too small
//! (`depot`, T3).

use alloc::boxed::Box;
use core::ptr::{self, NonNull};

use bufcore::author::try_box;

use super::bin::{Bin, FIRST_SLOTS, Locked};
use super::bin_bitmap::BinBitmap;
use super::lazy_array::LazyArray;
use crate::block::Block;
use crate::chain::Chain;
use crate::class;
use crate::settings::Settings;
use crate::sync::{AtomicPtr, CountU32, Ordering};

/// Shards whose bins are made first, or fewer. A power of two.
const FIRST_SHARDS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// The room in each first bin, in bytes, or one block if that is larger.
const FIRST_BYTES: usize = 1 << 20;

/// The bins of a class.
pub(super) struct ClassBins {
    pub(super) bitmap: BinBitmap,
    /// Not 0 once a bin was too small for what it was given, and the rest has room for that.
    is_short: CountU32,
    /// For how many blocks a bin has room until the rest is made.
    first_room: usize,
    /// Whether there is no rest to make.
    is_whole: bool,
    /// The rest, or null until it is made.
    rest: AtomicPtr<Rest>,
    first: LazyArray<Bin>,
    /// Stands for what is written when it is made.
    #[cfg(all(test, loom))]
    shadow: testkit::models::Shadow,
}

/// What is made when it has been missed.
struct Rest {
    /// The bins of the other shards.
    bins: LazyArray<Bin>,
    /// The slots of all bins that are not beside their words, shard after shard.
    slots: LazyArray<AtomicPtr<Block>>,
    /// How many of these each bin has.
    each: usize,
    #[cfg(all(test, loom))]
    shadow: testkit::models::Shadow,
}

/// The bin of a shard.
#[derive(Clone, Copy)]
pub(super) struct BinRef<'a> {
    pub(super) bin: &'a Bin,
    class_bins: &'a ClassBins,
    shard: usize,
}

impl ClassBins {
    /// Makes the first bins of a class; returns `None` when there is no memory.
    fn new(settings: &Settings, class: usize) -> Option<Self> {
        let first = settings.shards.min(FIRST_SHARDS);
        let first_room = (FIRST_BYTES / class::bytes_of(class)).clamp(1, FIRST_SLOTS);
        Some(Self {
            bitmap: BinBitmap::default(),
            is_short: CountU32::new(0),
            first_room,
            is_whole: settings.shards == first && settings.shard_limit(class) <= first_room,
            rest: AtomicPtr::new(ptr::null_mut()),
            first: LazyArray::new(first)?,
            #[cfg(all(test, loom))]
            shadow: written(),
        })
    }

    /// Returns the bins that `place` refers to, if there is one.
    pub(super) fn of(place: &AtomicPtr<Self>) -> Option<&Self> {
        // ORDER: Acquire pairs with the Release in `publish`: what it has is complete.
        let class_bins = place.load(Ordering::Acquire);
        // SAFETY: null, or made by `try_box` and valid as long as the place (T3).
        let class_bins = unsafe { class_bins.as_ref() };
        #[cfg(all(test, loom))]
        if let Some(class_bins) = class_bins {
            class_bins.shadow.read();
        }
        class_bins
    }

    /// Puts a new one where there is none. Without memory there is none afterwards either.
    pub(super) fn make(place: &AtomicPtr<Self>, settings: &Settings, class: usize) {
        if let Some(class_bins) = Self::new(settings, class) {
            publish(place, class_bins);
        }
    }

    fn rest(&self) -> Option<&Rest> {
        if self.is_whole {
            return None;
        }
        // ORDER: Acquire pairs with the Release in `publish`: what it has is complete.
        let rest = self.rest.load(Ordering::Acquire);
        // SAFETY: null, or made by `try_box` and valid as long as the bins (T3).
        let rest = unsafe { rest.as_ref() };
        #[cfg(all(test, loom))]
        if let Some(rest) = rest {
            rest.shadow.read();
        }
        rest
    }

    /// Returns whether the rest of the bins is to be made.
    pub(super) fn is_short(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.is_short.load(Ordering::Relaxed) != 0
    }

    /// Notes that a bin was too small for what it was given, or that all bins were.
    pub(super) fn note_short(&self) {
        if !self.is_whole && self.rest().is_none() {
            // ORDER: Relaxed: a hint.
            self.is_short.store(1, Ordering::Relaxed);
        }
    }

    /// Makes the rest. Returns `false` when there is no memory. The caller has nothing locked or
    /// entered.
    #[cold]
    pub(super) fn make_rest(&self, settings: &Settings, class: usize) -> bool {
        // ORDER: Relaxed: a hint.
        self.is_short.store(0, Ordering::Relaxed);
        if self.is_whole || self.rest().is_some() {
            return true;
        }
        if let Some(rest) = Rest::new(settings, class) {
            publish(&self.rest, rest);
            // There is room now.
            // ORDER: Relaxed: a hint.
            self.bitmap.full.store(0, Ordering::Relaxed);
        }
        self.rest().is_some()
    }

    /// Returns the number of the bins's shards, which is a power of two.
    pub(super) fn shards(&self) -> usize {
        self.first.len() + self.rest().map_or(0, |rest| rest.bins.len())
    }

    /// Returns the bin of a shard below `shards`.
    pub(super) fn at(&self, shard: usize) -> Option<BinRef<'_>> {
        let bin = match shard.checked_sub(self.first.len()) {
            None => self.first.get(shard),
            Some(other) => self.rest().and_then(|rest| rest.bins.get(other)),
        };
        bin.map(|bin| BinRef { bin, class_bins: self, shard })
    }

    /// Iterates over the shards from `home` on, each with its bit in the hints. (Where there are
    /// fewer bits than shards, some share one.)
    pub(super) fn from(&self, home: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let shards = self.shards();
        (0..shards).map(move |step| {
            let shard = home.wrapping_add(step) & (shards - 1);
            (shard, 1_usize.rotate_left(shard as u32))
        })
    }

    /// Returns for how many blocks each bin has room. It never becomes less.
    pub(super) fn room(&self) -> usize {
        self.rest().map_or(self.first_room, |rest| FIRST_SLOTS + rest.each)
    }

    /// Returns the slots of a bin that are not beside its word.
    fn more_slots(&self, shard: usize) -> &[AtomicPtr<Block>] {
        let slots = self.rest().and_then(|rest| rest.slots.get(shard * rest.each..(shard + 1) * rest.each));
        slots.unwrap_or_default()
    }
}

impl Drop for ClassBins {
    fn drop(&mut self) {
        // ORDER: Relaxed: whoever has the bins alone has seen all that was done with it.
        free(self.rest.load(Ordering::Relaxed));
    }
}

impl Rest {
    /// Makes the rest of the bins of a class; returns `None` when there is no memory.
    fn new(settings: &Settings, class: usize) -> Option<Self> {
        let shards = settings.shards;
        let each = settings.shard_limit(class).saturating_sub(FIRST_SLOTS);
        Some(Self {
            bins: LazyArray::new(shards.saturating_sub(FIRST_SHARDS))?,
            slots: LazyArray::new(each.checked_mul(shards)?)?,
            each,
            #[cfg(all(test, loom))]
            shadow: written(),
        })
    }
}

impl<'a> BinRef<'a> {
    /// Locks the bin, unless it is locked.
    ///
    /// # Errors
    ///
    /// As [`Bin::lock`].
    pub(super) fn lock(self) -> Result<Locked<'a>, Chain> {
        self.bin.lock(|| self.class_bins.more_slots(self.shard))
    }

    /// Locks the bin as `lock` does. The caller holds a handle, so the bin is not closed.
    pub(super) fn lock_open(self) -> Option<Locked<'a>> {
        let locked = self.lock();
        debug_assert!(locked.as_ref().err().is_none_or(Chain::is_empty), "T2: the pool has a handle");
        locked.ok()
    }

    /// Closes the bin, as [`Bin::close`] says.
    pub(super) fn close(self) -> Option<Chain> {
        self.bin.close(|| self.class_bins.more_slots(self.shard))
    }
}

#[cfg(all(test, loom))]
fn written() -> testkit::models::Shadow {
    let shadow = testkit::models::Shadow::default();
    shadow.write();
    shadow
}

/// Puts `value` where there is nothing, for good, or drops it. Without memory it is dropped too.
fn publish<T>(place: &AtomicPtr<T>, value: T) {
    let Some(made) = try_box(|| value).map(NonNull::as_ptr) else { return };
    // ORDER: Release pairs with the Acquire of those that look: what is there is complete. A
    // failure takes nothing.
    if place.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed).is_err() {
        free(made);
    }
}

/// Frees what `try_box` made for a place, and nobody else uses.
pub(super) fn free<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: made by `try_box`, and nobody else's: it was not published, or its place is being
        // dropped.
        drop(unsafe { Box::from_raw(made) });
    }
}
