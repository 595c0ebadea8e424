//! The table of series: what each is called, and which number it has.

#[cfg(feature = "alloc-large")]
use bufalloc::PageStats;
use bufcore::PoolStats;

use super::reading::Reading;

/// A number of the pools of one name, or of what has statistics of another kind.
pub(super) struct Series<T = Reading> {
    pub(super) name: &'static str,
    /// One line, without a backslash.
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "Prometheus has it in the name"))]
    pub(super) unit: Unit,
    /// Whether pools know it only with the feature `stats`.
    is_counted: bool,
    pub(super) get: fn(&T) -> u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// May go up and down.
    Gauge,
    /// Never decreases.
    Counter,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Count,
    Seconds,
}

/// Lists the series that pools can tell.
pub(super) fn known() -> impl Iterator<Item = &'static Series> {
    SERIES.iter().filter(|series| PoolStats::ARE_COUNTED || !series.is_counted)
}

/// Lists the series of the heap of large blocks, and its numbers, if the program has it.
#[cfg(feature = "alloc-large")]
pub(super) fn large() -> Option<(&'static [Series<PageStats>], PageStats)> {
    let stats = bufalloc::stats();
    (stats.address_bytes > 0).then_some((LARGE, stats))
}

/// The rows of a table.
macro_rules! series {
    ($($name:literal $kind:ident $unit:ident $is_counted:literal ($($field:tt)+) $help:literal;)*) => {
        &[$(Series {
            name: $name,
            help: $help,
            kind: Kind::$kind,
            unit: Unit::$unit,
            is_counted: $is_counted,
            get: |read| number(read.$($field)+),
        }),*]
    };
}

/// Converts counters, which are `u64`, and other numbers, which are `usize`.
fn number<T: TryInto<u64>>(number: T) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// The documentation of the module lists them too, and says where the names are from.
const SERIES: &[Series] = series! {
    "memory_pool_committed_bytes" Gauge Bytes false (stats.reserved_bytes)
        "Bytes of memory that the pool holds, in use or idle.";
    "memory_pool_pooled_bytes" Gauge Bytes false (stats.idle_bytes)
        "Bytes of the pool's memory that no buffer has, available for reuse.";
    "memory_pool_pinned_bytes" Gauge Bytes false (stats.pinned_bytes)
        "Bytes of the pool's memory that no request can use because a nearby buffer is in use.";
    "memory_pool_used_bytes" Gauge Bytes true (stats.in_use_bytes)
        "Bytes in use, as capacity of buffers.";
    "memory_pool_used_buffers" Gauge Count true (stats.in_use)
        "Buffers in use.";
    "memory_pool_max_used_bytes" Gauge Bytes true (stats.high_water_bytes)
        "The most bytes that were in use at once.";
    "memory_pool_max_used_buffers" Gauge Count true (stats.high_water)
        "The most buffers that were in use at once.";
    "memory_pool_rented_buffers_total" Counter Count true (stats.acquired)
        "Buffers that were acquired.";
    "memory_pool_allocated_buffers_total" Counter Count true (stats.fresh)
        "Buffers whose memory was new: free pages, memory of the system, or the fallback's.";
    "memory_pool_fallback_buffers_total" Counter Count true (stats.fallbacks)
        "Buffers that the fallback served because the pool was exhausted.";
    "memory_pool_exhausted_requests_total" Counter Count true (stats.exhausted)
        "Requests that were refused because the pool was exhausted.";
    "memory_pool_stalled_seconds" Gauge Seconds false (stalled.as_secs())
        "How long the first request that waits for memory has been waiting.";
};

/// As `SERIES`, without labels: the heap is the process's.
#[cfg(feature = "alloc-large")]
const LARGE: &[Series<PageStats>] = series! {
    "memory_large_resident_bytes" Gauge Bytes false (resident_bytes)
        "Bytes of pages that the process has for large blocks, in use or free.";
    "memory_large_dirty_bytes" Gauge Bytes false (dirty_bytes)
        "Bytes of free pages of large blocks, available for reuse.";
    "memory_large_max_resident_bytes" Gauge Bytes false (most_resident_bytes)
        "The most bytes of pages that the process had for large blocks.";
    "memory_large_mapped_bytes" Gauge Bytes false (address_bytes)
        "Bytes of addresses that are reserved for large blocks.";
    "memory_large_faulted_bytes_total" Counter Bytes false (faulted_bytes)
        "Bytes of pages that the system gave for large blocks.";
    "memory_large_returned_bytes_total" Counter Bytes false (returned_bytes)
        "Bytes of pages of large blocks that went back to the system.";
    "memory_large_moved_bytes_total" Counter Bytes false (moved_bytes)
        "Bytes of pages of large blocks that were moved to other addresses.";
};
