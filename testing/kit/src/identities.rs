//! Statistics that have to add up, whatever was done.

use bufcore::PoolStats;

/// Checks what [`PoolStats`] promises of every pool that no other thread uses. `own` are the bytes
/// of the buffers that are out and are no fallback's, as their capacities say; `is_clear` says that
/// nothing is out, nor was forgotten.
///
/// # Panics
///
/// When they do not add up.
#[track_caller]
pub fn check(stats: &PoolStats, own: usize, is_clear: bool) {
    assert_eq!(stats.acquired, stats.reused + stats.fresh, "{stats:?}");
    assert!(stats.fallbacks <= stats.fresh, "{stats:?}");
    assert!(
        stats.idle_bytes.checked_add(stats.pinned_bytes).is_some_and(|sum| sum <= stats.reserved_bytes),
        "{stats:?}"
    );
    if stats.reserved_bytes > 0 {
        assert!(own + stats.idle_bytes <= stats.reserved_bytes, "{own} bytes are out: {stats:?}");
    }
    if stats.acquired > 0 {
        assert!(stats.in_use <= stats.high_water, "{stats:?}");
        assert!(stats.in_use_bytes <= stats.high_water_bytes, "{stats:?}");
        assert!(own <= stats.in_use_bytes, "{own} bytes are out: {stats:?}");
    }
    if is_clear {
        // Not `in_use`: a buffer of no bytes that was forgotten is still counted.
        assert_eq!((stats.in_use_bytes, stats.pinned_bytes), (0, 0), "{stats:?}");
    }
    // Of the same moment, nothing was counted; of the beginning, all.
    let none = stats.since(stats);
    assert_eq!((none.acquired, none.reused, none.fresh, none.fallbacks, none.exhausted), (0, 0, 0, 0, 0));
    assert_eq!(stats.since(&PoolStats::default()), *stats);
}
