//! Counts what the memory of a pool is doing, and what became of it.

use crate::counters::Piece;
use crate::shared::Shared;

/// A snapshot of the pieces of memory of one pool. A *piece* is a shard, or the larger memory of
/// one buffer at a time. [`PoolStats`](bufcore::PoolStats) has their bytes.
///
/// Taking it stops no thread, so the numbers need not agree with each other while threads use the
/// pool. While no other thread does, `kept <= idle`, and with the `stats` feature
/// `allocations + preallocations == pinned + idle + discards + trims`.
///
/// The first four are zero unless the `stats` feature is on.
///
/// - When `allocations` and `discards` both rise,
///   [`max_idle_bytes`](crate::Builder::max_idle_bytes) is too small for the traffic.
/// - When [`pinned_bytes`](bufcore::PoolStats::pinned_bytes) is much more than
///   [`in_use_bytes`](bufcore::PoolStats::in_use_bytes), small survivors hold large shards.
///   [`evacuate`](crate::BumpPool::evacuate) copies them out.
///
/// ```
/// use bufbump::BumpPool;
///
/// let pool = BumpPool::builder().shard_size(64 << 10).preallocate(2).build()?;
/// let (small, large) = (pool.acquire(100)?, pool.acquire(1 << 20)?);
/// let stats = pool.piece_stats();
/// assert_eq!((stats.pinned, stats.idle), (2, 1)); // one shard and one large piece are in use
/// # #[cfg(feature = "stats")]
/// assert_eq!((stats.preallocations, stats.allocations), (2, 1));
/// # drop((small, large));
/// # Ok::<(), bufbump::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PieceStats {
    /// Pieces that were allocated for a request.
    pub allocations: u64,
    /// Shards that were allocated ahead ([`preallocate`](crate::Builder::preallocate)).
    pub preallocations: u64,
    /// Pieces that were freed when their last buffer was released: over the budget for idle memory,
    /// or over the number that is kept of their size. Also those that made room in the budget for
    /// another size.
    pub discards: u64,
    /// Pieces that were freed by trims.
    pub trims: u64,
    /// Pieces of which buffers are in use.
    pub pinned: usize,
    /// Pieces of which no buffer is in use: those that the pool keeps, and those of threads.
    pub idle: usize,
    /// Of the idle ones, those that the pool keeps for any thread.
    pub kept: usize,
}

impl PieceStats {
    /// Reads the statistics of a pool.
    pub(crate) fn of(shared: &Shared) -> Self {
        let mut stats = Self {
            allocations: shared.counters.pieces(Piece::Allocated),
            preallocations: shared.counters.pieces(Piece::Preallocated),
            discards: shared.counters.pieces(Piece::Discarded),
            trims: shared.counters.pieces(Piece::Trimmed),
            ..Self::default()
        };
        for shard in shared.depot.all() {
            let (in_use, bytes) = shard.snapshot();
            stats.pinned += usize::from(in_use > 0);
            stats.idle += usize::from(in_use == 0 && bytes > 0);
        }
        stats.kept = shared.kept().min(stats.idle);
        stats
    }
}
