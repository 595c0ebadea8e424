//! The tables in which each strategy has its name: no other file of this crate lists them, and no
//! test that is for all of them does.
//!
//! This file has macros alone, so that the tests read the same tables by its path.

/// The table of crates: hands its rows to the macro `$with`, behind what that macro is `$given`.
///
/// A row is `module "feature" crate;`: the crate's name as a module of this one, the feature that
/// brings it, and the crate.
macro_rules! crates {
    ($with:ident! { $($given:tt)* }) => {
        $with! {
            { $($given)* }

            bump "bump" bufbump;
            mirror "mirror" bufmirror;
            ring "ring" bufring;
            shard "shard" bufshard;
            slot "slot" bufslot;
        }
    };
}

/// The table of pools that can be chosen at run time: hands its rows to the macro `$with`, behind
/// what that macro is `$given`. Their order is that of `AnyBuilder::NAMES`.
///
/// A row begins with the documentation of the variant of `AnyBuilder`, and continues with
///
/// ```text
/// [module Variant "name" if "feature"] { columns }
/// ```
///
/// - `module`: what its tests are called.
/// - `Variant`: of `AnyBuilder`, and of the private enums of pools and leases.
/// - `"name"`: its name in texts and configuration files.
/// - `"feature"`: the feature of this crate without which the row is left out.
///
/// The columns, in this order:
///
/// - `pool`: the pool's type.
/// - `builder`: the type that has the settings.
/// - `refuses`: whether the pool may refuse what would fit into it, where another falls back.
/// - `build`: makes a `pool` from a `builder`.
/// - `is_fallback`: whether a lease is one of the heap's, because the pool had nothing to give.
/// - `share`: another handle to the same pool, or `None` if it serves one thread.
/// - `watched`: the pool for a keeper, or `None` if it serves one thread, or has no idle memory to
///   give back.
/// - `settings`: the methods of `builder` that are settings, each with what it takes: `bytes`,
///   `count`, `switch` or `pages`, and the feature of this crate without which it is left out.
///   Every builder has `wipe` besides.
macro_rules! strategies {
    ($with:ident! { $($given:tt)* }) => {
        $with! {
            { $($given)* }

            /// Every buffer is a fresh allocation.
            [heap Heap "heap" if "alloc"] {
                pool: bufcore::HeapPool,
                builder: HeapBuilder,
                refuses: false,
                build: |builder| builder.build(),
                is_fallback: |_| false,
                share: |_| None,
                watched: |_| None,
                settings: [alignment bytes],
            }

            /// The slot pool with the heap as fallback.
            [slot Slot "slot" if "slot"] {
                pool: bufslot::SlotPool,
                builder: bufslot::Builder,
                refuses: false,
                build: |builder| builder.build(),
                is_fallback: |lease| lease.is_fallback(),
                share: |_| None,
                watched: |_| None,
                settings: [capacity bytes, slots count, alignment bytes, stagger switch],
            }

            /// The slot pool without a fallback.
            [bounded_slot BoundedSlot "bounded-slot" if "slot"] {
                pool: bufslot::SlotPool<bufcore::NoFallback>,
                builder: bufslot::Builder,
                refuses: true,
                build: |builder| builder.build_with(bufcore::NoFallback),
                is_fallback: |_| false,
                share: |_| None,
                watched: |_| None,
                settings: [capacity bytes, slots count, alignment bytes, stagger switch],
            }

            /// The ring.
            [ring Ring "ring" if "ring"] {
                pool: bufring::RingPool,
                builder: bufring::Builder,
                refuses: true,
                build: |builder| builder.build(),
                is_fallback: |_| false,
                share: |_| None,
                watched: |_| None,
                settings: [capacity bytes, buffers count, alignment bytes],
            }

            /// The bump-pointer shards.
            [bump Bump "bump" if "bump"] {
                pool: bufbump::BumpPool,
                builder: bufbump::Builder,
                refuses: false,
                build: |builder| builder.build(),
                is_fallback: |lease| lease.is_fallback(),
                share: |pool| Some(pool.clone()),
                watched: |pool| Some(pool),
                settings: [
                    shard_size bytes, max_probes count, max_idle_bytes bytes, alignment bytes, preallocate count,
                    map_options pages if "mmap"
                ],
            }

            /// The sharded thread-local pool.
            [shard Shard "shard" if "shard"] {
                pool: bufshard::ShardPool,
                builder: bufshard::Builder,
                refuses: false,
                build: |builder| builder.build(),
                is_fallback: |lease| lease.is_fallback(),
                share: |pool| Some(pool.clone()),
                watched: |pool| Some(pool),
                settings: [
                    thread_cache count, max_cached_bytes bytes, smallest_pooled bytes, largest_pooled bytes,
                    shard_buffers count, shards count, max_bytes bytes, alignment bytes,
                    map_options pages if "mmap"
                ],
            }
        }
    };
}
