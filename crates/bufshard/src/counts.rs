//! The counters of the `stats` feature; without it, types of no size whose methods do nothing.
//!
//! Each thread counts in its cache, with a plain load and a plain store. No other thread writes
//! there, except for a reset of the high-water marks. A mark that is raised at the same moment
//! undoes the reset. Requests and releases without a cache are rare. They are counted in one place
//! for all threads, by locked additions.

use bufcore::PoolStats;

#[cfg(feature = "stats")]
use crate::class::MAX_CLASSES;
#[cfg(feature = "stats")]
use crate::sync::{AtomicUsize, Ordering};

/// Where the memory of a buffer came from. The first three have the numbers of their [`Count`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// The thread's cache.
    Thread,
    /// A shard.
    Shard,
    /// The allocator, for a size class.
    Fresh,
    /// The allocator, for one buffer of a size that is not pooled.
    Single,
}

/// Why an idle block of a class was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The shards had no room for it.
    NoRoom,
    /// A trim, or room in the budget that somebody needs.
    Trim,
    /// A request that is refused, the first of those who wait, had taken it: nobody is told.
    Returned,
    /// The pool is gone, or the block was never counted.
    Uncounted,
}

/// What is counted of each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    ThreadHits,
    ShardHits,
    Fresh,
    Preallocations,
    Discards,
    Trims,
    Released,
}

/// The counters of one thread's cache, or of all that is done without one.
#[derive(Default)]
pub(crate) struct Counts {
    #[cfg(feature = "stats")]
    inner: Inner,
}

#[cfg(feature = "stats")]
struct Inner {
    /// Written by several threads.
    is_common: bool,
    singles: AtomicUsize,
    exhausted: AtomicUsize,
    /// By [`Count`].
    classes: [[AtomicUsize; MAX_CLASSES]; Count::Released as usize + 1],
    /// Buffers that were acquired, and their bytes; and those that were released.
    acquired: [AtomicUsize; 2],
    released: [AtomicUsize; 2],
    /// What was in use of all others at the last look.
    others: [AtomicUsize; 2],
    /// The most that was in use, as far as this thread knew.
    high: [AtomicUsize; 2],
}

#[cfg(feature = "stats")]
impl Default for Inner {
    fn default() -> Self {
        let pair = || core::array::from_fn(|_| AtomicUsize::new(0));
        Self {
            is_common: false,
            singles: AtomicUsize::new(0),
            exhausted: AtomicUsize::new(0),
            classes: core::array::from_fn(|_| core::array::from_fn(|_| AtomicUsize::new(0))),
            acquired: pair(),
            released: pair(),
            others: pair(),
            high: pair(),
        }
    }
}

#[cfg(feature = "stats")]
fn load(counter: &AtomicUsize) -> usize {
    // ORDER: Relaxed: a count, which publishes nothing.
    counter.load(Ordering::Relaxed)
}

#[cfg(feature = "stats")]
impl Inner {
    /// Adds to a counter, and returns what it is then.
    #[inline(always)]
    fn add(&self, counter: &AtomicUsize, n: usize) -> usize {
        if self.is_common {
            // ORDER: Relaxed: a count, which publishes nothing.
            return counter.fetch_add(n, Ordering::Relaxed).wrapping_add(n);
        }
        let sum = load(counter).wrapping_add(n);
        // ORDER: Relaxed: as above; only this thread writes it.
        counter.store(sum, Ordering::Relaxed);
        sum
    }

    /// Adds to what is counted of a class, if it is one.
    #[inline(always)]
    fn add_of(&self, count: usize, class: usize, n: usize) {
        if let Some(counter) = self.classes[count].get(class) {
            self.add(counter, n);
        }
    }

    /// Returns how many buffers or bytes are in use, as far as these counters say. The number may
    /// be less than none, and wraps around then.
    fn out(&self, unit: usize) -> usize {
        load(&self.acquired[unit]).wrapping_sub(load(&self.released[unit]))
    }
}

#[cfg_attr(
    not(feature = "stats"),
    allow(unused_variables, clippy::unused_self, reason = "nothing is counted then")
)]
impl Counts {
    /// Makes counters that several threads write.
    pub(crate) fn common() -> Self {
        Self {
            #[cfg(feature = "stats")]
            inner: Inner { is_common: true, ..Inner::default() },
        }
    }

    /// Counts a buffer of `bytes` bytes of a class as handed out.
    #[inline(always)]
    pub(crate) fn acquired(&self, tier: Tier, class: usize, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            let inner = &self.inner;
            match tier {
                Tier::Single => inner.add(&inner.singles, 1),
                tier => inner.add(&inner.classes[tier as usize][class], 1),
            };
            for (unit, n) in [1, bytes].into_iter().enumerate() {
                inner.add(&inner.acquired[unit], n);
                let out = inner.out(unit).wrapping_add(load(&inner.others[unit]));
                // Less than none, where others released since the last look.
                if out > load(&inner.high[unit]) && out <= isize::MAX as usize {
                    // ORDER: Relaxed: a count. Where several threads write it, one of two marks of
                    // the same moment may be lost.
                    inner.high[unit].store(out, Ordering::Relaxed);
                }
            }
        }
    }

    /// Counts a buffer of `bytes` bytes of a class, or of none, as back.
    #[inline(always)]
    pub(crate) fn released(&self, class: usize, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            let inner = &self.inner;
            inner.add_of(Count::Released as usize, class, 1);
            inner.add(&inner.released[0], 1);
            inner.add(&inner.released[1], bytes);
        }
    }

    /// Counts a request that was refused as exhausted.
    pub(crate) fn exhausted(&self) {
        #[cfg(feature = "stats")]
        self.inner.add(&self.inner.exhausted, 1);
    }

    /// Counts an idle block of a class, or of none, as freed.
    pub(crate) fn freed(&self, class: usize, why: Why) {
        #[cfg(feature = "stats")]
        {
            let count = match why {
                Why::NoRoom => Count::Discards,
                Why::Trim | Why::Returned => Count::Trims,
                Why::Uncounted => return,
            };
            self.inner.add_of(count as usize, class, 1);
        }
    }

    /// Counts blocks of a class that were made ahead.
    pub(crate) fn preallocated(&self, class: usize, blocks: usize) {
        #[cfg(feature = "stats")]
        self.inner.add_of(Count::Preallocations as usize, class, blocks);
    }

    /// Looks what is out of all others, for the high-water marks. `all` are the counters of the
    /// whole pool, these among them.
    pub(crate) fn look_at_others<'a>(&self, all: impl Iterator<Item = &'a Counts>) {
        #[cfg(feature = "stats")]
        {
            let mut sums = [0_usize; 2];
            for inner in all.map(|counts| &counts.inner).filter(|inner| !core::ptr::eq(*inner, &self.inner)) {
                for (unit, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(inner.out(unit));
                }
            }
            for (unit, sum) in sums.into_iter().enumerate() {
                // ORDER: Relaxed: a count.
                self.inner.others[unit].store(sum, Ordering::Relaxed);
            }
        }
    }

    /// Sets the high-water marks, from any thread: one that is being raised at the same moment
    /// stays raised.
    pub(crate) fn set_high_water(&self, buffers: usize, bytes: usize) {
        #[cfg(feature = "stats")]
        for (mark, value) in self.inner.high.iter().zip([buffers, bytes]) {
            // ORDER: Relaxed: a count, which publishes nothing.
            mark.store(value, Ordering::Relaxed);
        }
    }

    /// Adds up all counts of a pool.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> PoolStats {
        let mut stats = PoolStats::default();
        all.for_each(|counts| counts.add_to(&mut stats));
        // Amid the traffic a release may be seen without its request: then the difference is less
        // than nothing.
        for out in [&mut stats.in_use, &mut stats.in_use_bytes] {
            *out = usize::try_from(out.cast_signed()).unwrap_or(0);
        }
        stats.high_water = stats.high_water.max(stats.in_use);
        stats.high_water_bytes = stats.high_water_bytes.max(stats.in_use_bytes);
        stats
    }

    /// Adds these to a snapshot.
    fn add_to(&self, stats: &mut PoolStats) {
        #[cfg(feature = "stats")]
        {
            let inner = &self.inner;
            let sum = |tier: Tier| inner.classes[tier as usize].iter().map(load).sum::<usize>() as u64;
            stats.acquired += load(&inner.acquired[0]) as u64;
            stats.reused += sum(Tier::Thread) + sum(Tier::Shard);
            stats.fallbacks += load(&inner.singles) as u64;
            stats.exhausted += load(&inner.exhausted) as u64;
            stats.fresh += sum(Tier::Fresh) + load(&inner.singles) as u64;
            stats.in_use = stats.in_use.wrapping_add(inner.out(0));
            stats.in_use_bytes = stats.in_use_bytes.wrapping_add(inner.out(1));
            stats.high_water = stats.high_water.max(load(&inner.high[0]));
            stats.high_water_bytes = stats.high_water_bytes.max(load(&inner.high[1]));
        }
    }

    /// Returns what was counted of one class.
    pub(crate) fn of_class(&self, count: Count, class: usize) -> usize {
        #[cfg(feature = "stats")]
        return load(&self.inner.classes[count as usize][class]);
        #[cfg(not(feature = "stats"))]
        0
    }
}
