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
//! | `memory_pool_pooled_bytes` | gauge | `idle_bytes` | known in pools that threads share, 0 in others | .NET `aspnetcore.memory_pool.pooled` |
//! | `memory_pool_pinned_bytes` | gauge | `pinned_bytes` | known | here |
//! | `memory_pool_used_bytes` | gauge | `in_use_bytes` | absent | OpenTelemetry `jvm.buffer.memory.used`; Prometheus `jvm_buffer_pool_used_bytes` |
//! | `memory_pool_used_buffers` | gauge | `in_use` | absent | OpenTelemetry `jvm.buffer.count`; Prometheus `jvm_buffer_pool_used_buffers` |
//! | `memory_pool_max_used_bytes` | gauge | `high_water_bytes` | absent | here |
//! | `memory_pool_max_used_buffers` | gauge | `high_water` | absent | here |
//! | `memory_pool_rented_buffers_total` | counter | `acquired` | absent | .NET `BufferRented`; `aspnetcore.memory_pool.rented` counts bytes |
//! | `memory_pool_allocated_buffers_total` | counter | `fresh` | absent | .NET `BufferAllocated`; `aspnetcore.memory_pool.allocated` counts bytes |
//! | `memory_pool_fallback_buffers_total` | counter | `fallbacks` | absent | here; .NET says `PoolExhausted` |
//! | `memory_pool_exhausted_requests_total` | counter | `exhausted` | absent | here |
//! | `memory_pool_stalled_seconds` | gauge | [`Trim::stalled`](crate::Trim::stalled), whole seconds | known in shard pools, 0 in others | here |
//!
//! The label `pool` is the name that the program gave. It is Prometheus's label for the pools of a
//! Java program. OpenTelemetry calls it `jvm.buffer.pool.name`, and .NET
//! `aspnetcore.memory_pool.owner`. Buffers that were served from memory of the pool (`reused`) are
//! those that were rented and not allocated.
//!
//! .NET has a counter of bytes that were evicted, too. A pool does not count those; a [`Traced`]
//! pool tells each time.
//!
//! # Large blocks
//!
//! Where the program's global allocator is [`bufalloc`](crate::bufalloc::Large) (feature
//! `alloc-large`), its numbers are there as well, without a label:
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
//! It is not to be watched under a name too: a pool's series say nothing of blocks.
//!
//! # Without the feature `stats`
//!
//! Pools know their reserved bytes and, in the strategies that threads share, their idle and pinned
//! bytes. These series are there. A pool over one region has 0 idle bytes then, which means that
//! nobody knows. All other series are absent, because a zero would be a lie
//! ([`PoolStats::ARE_COUNTED`](crate::PoolStats::ARE_COUNTED)). A program's own pool has what
//! its [`Trim::stats`](crate::Trim::stats) says.
//!
//! # Pools of one name
//!
//! They are one series, with the sum of their numbers. So the pools of a program's threads can have
//! a name together. Counters keep what pools counted that have ended, as of the last time that
//! somebody read them: they never go down, whatever a pool says. When the last pool of a name has
//! ended, its series disappear, and if another one comes, the counters go on from where they were.
//! A name is kept for as long as the monitor. So names are kinds of pools, and not one for each
//! connection.
//!
//! # What it costs
//!
//! Nothing is added to what pools do. A pool pays for a look at it: what
//! [`stats`](crate::BufferPool::stats) of its strategy costs.
//!
//! # Code of the program's
//!
//! Pools, recorders and subscribers are called with nothing locked. They may use the monitor and
//! the pools, and drop both. A pool whose code panics counts as ended. The panic of a recorder or a
//! subscriber reaches the caller, and leaves the monitor as it was.

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
