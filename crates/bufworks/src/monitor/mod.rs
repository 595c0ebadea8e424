//! Live statistics of pools, for monitoring in production.
//!
//! A [`Monitor`] has pools by name, and reads their statistics on demand. It holds them as a
//! [`Keeper`](crate::Keeper) does, and keeps none alive. The numbers are exported in one of these
//! ways:
//!
//! - [`Monitor::prometheus`] is the text that a Prometheus server scrapes (feature `prometheus`).
//! - [`Monitor::record`] sends the numbers to the recorder of the crate `metrics` (feature
//!   `metrics`), and thus to all its exporters.
//! - [`Monitor::trace`] reports the changes since its last call to the subscriber of the crate
//!   `tracing` (feature `tracing`). [`Traced`] reports each trim of a keeper, and pools whose
//!   requests wait for long.
//! - [`Monitor::read`] is for all other systems.
//!
//! ```
//! # #[cfg(all(feature = "shard", feature = "prometheus"))] {
//! use bufworks::monitor::Monitor;
//! use bufworks::shard::ShardPool;
//!
//! let pool = ShardPool::new()?;
//! let monitor = Monitor::new();
//! monitor.watch("packets", &pool);
//! drop(pool.acquire(1500)?);
//!
//! let text = monitor.prometheus(); // the body of the answer to `GET /metrics`
//! assert!(text.contains("\n# TYPE memory_pool_pooled_bytes gauge\n"));
//! assert!(text.contains("\nmemory_pool_pooled_bytes{pool=\"packets\"} "));
//! # }
//! # Ok::<(), bufworks::Error>(())
//! ```
//!
//! # Names
//!
//! | name | kind | of [`PoolStats`](crate::PoolStats) | without `stats` | name from |
//! | --- | --- | --- | --- | --- |
//! | `memory_pool_committed_bytes` | gauge | `reserved_bytes` | known | OpenTelemetry `jvm.memory.committed`; Prometheus `jvm_memory_pool_committed_bytes` |
//! | `memory_pool_pooled_bytes` | gauge | `idle_bytes` | known for shared pools, 0 for others | .NET `aspnetcore.memory_pool.pooled` |
//! | `memory_pool_pinned_bytes` | gauge | `pinned_bytes` | known | here |
//! | `memory_pool_used_bytes` | gauge | `in_use_bytes` | absent | OpenTelemetry `jvm.buffer.memory.used`; Prometheus `jvm_buffer_pool_used_bytes` |
//! | `memory_pool_used_buffers` | gauge | `in_use` | absent | OpenTelemetry `jvm.buffer.count`; Prometheus `jvm_buffer_pool_used_buffers` |
//! | `memory_pool_max_used_bytes` | gauge | `high_water_bytes` | absent | here |
//! | `memory_pool_max_used_buffers` | gauge | `high_water` | absent | here |
//! | `memory_pool_rented_buffers_total` | counter | `acquired` | absent | .NET `BufferRented`; `aspnetcore.memory_pool.rented` counts bytes |
//! | `memory_pool_allocated_buffers_total` | counter | `fresh` | absent | .NET `BufferAllocated`; `aspnetcore.memory_pool.allocated` counts bytes |
//! | `memory_pool_fallback_buffers_total` | counter | `fallbacks` | absent | here; .NET says `PoolExhausted` |
//! | `memory_pool_exhausted_requests_total` | counter | `exhausted` | absent | here |
//! | `memory_pool_stalled_seconds` | gauge | [`Trim::stalled`](crate::Trim::stalled), whole seconds | known for shard pools, 0 for others | here |
//!
//! The label `pool` is the name that the program gave. It is Prometheus's label for the pools of a
//! Java program. OpenTelemetry calls it `jvm.buffer.pool.name`, and .NET
//! `aspnetcore.memory_pool.owner`. Buffers that were served from memory of the pool (`reused`) are
//! the rented ones that were not allocated.
//!
//! .NET has a counter of bytes that were evicted, too. A pool does not count those; a [`Traced`]
//! pool reports each one.
//!
//! # Large blocks
//!
//! If the program's global allocator is [`bufalloc`](crate::bufalloc::Large) (feature
//! `alloc-large`), its numbers are exported as well, without a label:
//!
//! | name | kind | of [`PageStats`](crate::bufalloc::PageStats) |
//! | --- | --- | --- |
//! | `memory_large_resident_bytes` | gauge | `resident_bytes` |
//! | `memory_large_dirty_bytes` | gauge | `dirty_bytes` |
//! | `memory_large_max_resident_bytes` | gauge | `most_resident_bytes` |
//! | `memory_large_mapped_bytes` | gauge | `address_bytes` |
//! | `memory_large_faulted_bytes_total` | counter | `faulted_bytes` |
//! | `memory_large_returned_bytes_total` | counter | `returned_bytes` |
//! | `memory_large_moved_bytes_total` | counter | `moved_bytes` |
//!
//! Do not also watch it under a name: the series of pools do not include blocks.
//!
//! # Without the feature `stats`
//!
//! Reserved bytes are always known, and for shared strategies idle and pinned bytes. These series
//! are always exported. Without `stats`, a pool over one region reports 0 idle bytes, which means
//! unknown. Without it all other series are absent, because a zero would be wrong
//! ([`PoolStats::ARE_COUNTED`](crate::PoolStats::ARE_COUNTED)). For a program's own pool,
//! [`Trim::stats`](crate::Trim::stats) provides the numbers.
//!
//! # Pools of one name
//!
//! Pools of the same name are one series, with the sum of their numbers. The pools of a program's
//! threads can therefore share a name. Counters include the counts of dropped pools, as of their
//! last read: they never decrease, whatever a pool reports. When the last pool of a name is
//! dropped, its series disappear; if another one is added, the counters continue from their last
//! values. A name is kept as long as the monitor. Names should therefore be kinds of pools, not one
//! for each connection.
//!
//! # What it costs
//!
//! The monitor adds no work to the pools' calls. Reading a pool costs
//! [`stats`](crate::BufferPool::stats) of its strategy.
//!
//! # Code of the program's
//!
//! Pools, recorders and subscribers are called without a lock held. They may use the monitor and
//! the pools, and drop both. A pool whose code panics counts as dropped. The panic of a recorder or
//! a subscriber propagates to the caller, and leaves the monitor unchanged.

#[cfg(feature = "tracing")]
mod events;
#[cfg(feature = "metrics")]
mod facade;
mod pools;
#[cfg(feature = "prometheus")]
mod prometheus;
mod published;
mod reading;
#[cfg(any(feature = "metrics", feature = "prometheus"))]
mod series;
#[cfg(feature = "tracing")]
mod traced;

pub use pools::Monitor;
#[cfg(feature = "prometheus")]
pub use prometheus::PROMETHEUS_CONTENT_TYPE;
pub use published::Published;
pub use reading::Reading;
#[cfg(feature = "tracing")]
pub use traced::Traced;
