//! Counts what a pool has done and holds, by what its shards are doing.

use crate::counts::Piece;
use crate::shared::Shared;

/// A snapshot of the memory of one pool, in plain numbers.
///
/// Taking it stops no thread, so the numbers need not agree with each other while threads use the
/// pool. [`PoolStats`](bufcore::PoolStats) counts requests, and the buffers that are out.
///
/// The counters are zero unless the `stats` feature is on; the pinned and the idle pieces are
/// always known.
///
/// A *piece* is a shard, or the larger memory of one buffer at a time.
///
/// # How the numbers add up
///
/// While no other thread uses the pool, after every call:
///
/// - `allocations + preallocations == pinned + idle + discards + trims`, with the feature.
/// - `reserved_bytes == pinned_bytes + idle_bytes`, and `kept <= idle`.
///
/// # What to look at
///
/// - When `allocations` and `discards` both rise,
///   [`max_idle_bytes`](crate::Builder::max_idle_bytes) is too small for the traffic.
/// - When `pinned_bytes` is much more than [`in_use_bytes`](bufcore::PoolStats::in_use_bytes),
///   small survivors hold large shards. [`detach_if_pinning`](crate::BumpPool::detach_if_pinning)
///   copies them out.
///
/// [`since`](Self::since) turns two snapshots into rates.
///
/// ```
/// use bufbump::BumpPool;
///
/// let pool = BumpPool::builder().shard_size(64 << 10).preallocate(2).build()?;
/// let (small, large) = (pool.acquire(100)?, pool.acquire(1 << 20)?);
/// let stats = pool.bump_stats();
/// assert_eq!((stats.pinned, stats.idle), (2, 1)); // one shard and one large piece are in use
/// assert_eq!(stats.reserved_bytes, stats.pinned_bytes + stats.idle_bytes);
/// # #[cfg(feature = "stats")]
/// assert_eq!((stats.preallocations, stats.allocations), (2, 1));
/// # drop((small, large));
/// # Ok::<(), bufbump::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BumpStats {
    /// Pieces that were allocated for a request.
    pub allocations: u64,
    /// Shards that were allocated ahead ([`preallocate`](crate::Builder::preallocate)).
    pub preallocations: u64,
    /// Pieces that were freed when they were back: over the budget for idle memory, without a place
    /// among those of their size, or from before a [`clear`](crate::BumpPool::clear). Also those
    /// that made room in the budget for another size.
    pub discards: u64,
    /// Pieces that were freed by trims.
    pub trims: u64,
    /// Pieces of which buffers are out.
    pub pinned: usize,
    /// Pieces of which nothing is out: those that the pool keeps, and those of threads.
    pub idle: usize,
    /// Of the idle ones, those that the pool keeps for any thread.
    pub kept: usize,
    /// Bytes of all pieces, without headers: of a shard what the settings say, rounded up to what
    /// the alignment leaves. Of a piece with a mapping of its own, all of that.
    pub reserved_bytes: usize,
    /// Of those, bytes of pieces of which buffers are out.
    pub pinned_bytes: usize,
    /// Of those, bytes of pieces of which nothing is out.
    pub idle_bytes: usize,
}

impl BumpStats {
    /// Returns what was counted since `earlier`, a snapshot of the same pool: the difference of the
    /// counters. The numbers of what is pinned and idle are those of `self`.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().preallocate(2).build()?;
    /// let earlier = pool.bump_stats();
    /// pool.trim();
    /// let lately = pool.bump_stats().since(&earlier);
    /// assert_eq!((earlier.idle, lately.idle), (2, 0));
    /// # #[cfg(feature = "stats")]
    /// assert_eq!((lately.preallocations, lately.trims), (0, 2));
    /// # Ok::<(), bufbump::bufcore::ConfigError>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            preallocations: self.preallocations.wrapping_sub(earlier.preallocations),
            discards: self.discards.wrapping_sub(earlier.discards),
            trims: self.trims.wrapping_sub(earlier.trims),
            ..*self
        }
    }

    /// Reads the statistics of a pool.
    pub(crate) fn of(shared: &Shared) -> Self {
        let mut stats = Self {
            allocations: shared.counts.of(Piece::Allocated),
            preallocations: shared.counts.of(Piece::Preallocated),
            discards: shared.counts.of(Piece::Discarded),
            trims: shared.counts.of(Piece::Trimmed),
            ..Self::default()
        };
        shared.each_shard(|shard| {
            let (out, bytes) = shard.snapshot();
            stats.reserved_bytes += bytes;
            if out > 0 {
                stats.pinned += 1;
                stats.pinned_bytes += bytes;
            } else if bytes > 0 {
                stats.idle += 1;
                stats.idle_bytes += bytes;
            }
        });
        stats.kept = shared.kept().min(stats.idle);
        stats
    }
}
