//! The suite as `#[test]` functions for one strategy.

use std::time::Duration;

use bufcore::{Buf, BufferPool};

use crate::process;
use crate::trials::scaled;

/// What the trials have to know about a strategy. Filled in by
/// [`conformance!`](crate::conformance!).
#[derive(Debug)]
pub struct Kit<P: BufferPool> {
    /// A pool of ordinary size.
    pub make: fn() -> P,
    /// Whether a buffer came from the fallback. A strategy without one says `false`.
    pub is_fallback: fn(&Buf<P::Lease>) -> bool,
    /// Whether requests up to `max_capacity` may be refused.
    pub rejects: bool,
    /// One in this number of buffers of T1, T2 and T6's last releases: 1 for the kit that has all
    /// of them, more for variants of it.
    pub share: usize,
    /// Gives memory back: what was idle for this time, or all of it. Nothing, where a pool has no
    /// trims.
    pub trim: fn(&mut P, Option<Duration>),
}

impl<P: BufferPool> Kit<P> {
    /// Returns [`scaled`], of which a variant gets its share.
    pub(crate) fn scaled(&self, full: usize) -> usize {
        scaled(full).div_ceil(self.share)
    }

    /// Gives memory back in each way.
    #[cfg(target_os = "linux")]
    pub(crate) fn trim_all(&self, pool: &mut P) {
        [Some(Duration::ZERO), Some(Duration::ZERO), None].into_iter().for_each(|age| (self.trim)(pool, age));
    }
}

impl<P: BufferPool> Clone for Kit<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: BufferPool> Copy for Kit<P> {}

/// Stamps out the suite for one strategy, as a module of tests.
///
/// ```text
/// testkit::conformance! {
///     name: slot,                                        // the module
///     pool: SlotPool = || SlotPool::new(1 << 20, 64).unwrap(), // its type, and how to make one
///     is_fallback: |buf| buf.lease().is_fallback(),      // or `|_| false`
///     rejects: false,                                    // may refuse requests that fit it
///     // What follows may be left out.
///     share: 5,                                          // a variant: a fifth of the long trials' traffic, and of T25 a part
///     handle: |pool| Some(pool.clone()),                 // another handle, for other threads: T25 with it
///     trim: trials::trim,                          // what gives memory back: in generated programs, T1, T25, T34
///     // Each of these adds trials.
///     sized: |bytes| SlotPool::new(bytes, 8),            // a pool of that capacity: T5, T18
///     aligned: |bytes| SlotPool::builder().alignment(bytes)…, // T14
///     wiping: || SlotPool::builder().wipe(true)…,        // T11
///     over: |hostile| SlotPool::builder()…build_with(hostile), // over a fallback: T9, T21 to T23
///     promised: |n, bytes| SlotPool::builder()…,         // set up for n buffers of equal size: T27
/// }
/// ```
#[macro_export]
macro_rules! conformance {
    (
        name: $name:ident,
        pool: $pool:ty = $make:expr,
        is_fallback: $is_fallback:expr,
        rejects: $rejects:expr,
        $(share: $share:expr,)?
        $(handle: $handle:expr,)?
        $(trim: $trim:expr,)?
        $(sized: $sized:expr,)?
        $(aligned: $aligned:expr,)?
        $(wiping: $wiping:expr,)?
        $(over: $over:expr,)?
        $(promised: $promised:expr,)?
    ) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            use $crate::trials;

            fn kit() -> $crate::Kit<$pool> {
                fn trim(_pool: &mut $pool, _age: Option<std::time::Duration>) {
                    // At most one.
                    let given: &[fn(&mut $pool, Option<std::time::Duration>)] = &[$($trim)?];
                    given.iter().for_each(|trim| trim(_pool, _age));
                }
                $crate::Kit {
                    make: $make,
                    is_fallback: $is_fallback,
                    rejects: $rejects,
                    share: 1 $(* $share)?,
                    trim,
                }
            }

            /// Returns another handle of the pool, where there are such.
            #[cfg(target_os = "linux")]
            fn handle(_pool: &$pool) -> Option<$pool> {
                let given: &[fn(&$pool) -> Option<$pool>] = &[$($handle)?];
                given.first().and_then(|handle| handle(_pool))
            }

            $crate::tests! {
                model: $crate::ops::run(&kit());
                t01_traffic: trials::traffic::buffers(&kit());
                t04_handover: trials::traffic::handover(&kit());
                t05_absurd_requests [60]: trials::failure::absurd_requests(&kit());
                // Its threads wait for each other by yielding, which takes long beside others that
                // compute.
                t06_late_releases [600]: trials::lifetime::late_releases(&kit());
                t06_buffer_outlives_pool [60]: trials::lifetime::outlives(&kit());
                t07_forgotten_handles [60]: trials::lifetime::forgotten(&kit());
                t08_threads_that_end [60]: trials::lifetime::threads_end(&kit());
                t09_panicking_consumer [60]: trials::lifetime::panicking_consumer(&kit());
                t10_pools_in_turn: trials::serving::pools_in_turn(&kit());
                t11_secrets: trials::secrets::filled_part_only(&kit());
                t13_one_held_for_ever: trials::serving::one_held(&kit());
                t14_views_of_nothing: trials::contents::views_of_nothing(&kit());
                t14_empty_views: trials::contents::empty_views(&kit());
                t14_empty_frames: trials::contents::empty_frames(&kit());
                t15_mutators: $crate::ops::mutators(&kit());
                t17_counters: trials::serving::counters(&kit(), cfg!(feature = "stats"));
                t30_one_handle: trials::erased::t30_one_handle(&kit());
                t32_grown_and_compacted: trials::room::t32_grown_and_compacted(&kit());
                t34_sizes_at_thresholds: $crate::ops::run_at_thresholds(&kit());
                t34_counts_at_thresholds: trials::thresholds::t34_counts(&kit());
            }

            #[cfg(target_os = "linux")]
            $crate::tests! {
                t12_memory [600]: trials::memory::bounded(&kit());
                t19_soak [3600]: trials::memory::soak(&kit());
                t25_refused_calls [120]: trials::system::t25_refused_calls(&kit(), handle);
            }

            #[cfg(target_os = "linux")]
            $crate::unless_variant! {
                [$($share)?]
                t25_signals [60]: trials::system::t25_signals(&kit(), handle);
                t25_no_address_space [60]: trials::system::t25_no_address_space(&kit(), handle);
            }

            $(
                $crate::tests! {
                    t05_absurd_pools [60]: trials::failure::absurd_pools($sized);
                }

                #[cfg(target_os = "linux")]
                $crate::tests! {
                    t18_failing_constructions [60]: trials::failure::failing_constructions($sized);
                }
            )?

            $($crate::tests! {
                t14_alignment: trials::contents::alignment($aligned);
            })?

            $($crate::conformance_wipes! { $wiping })?

            $($crate::tests! {
                t21_hostile_fallback: trials::fallbacks::t21_hostile($over, $is_fallback);
                t22_panicking_fallback: trials::fallbacks::t22_panics($over, $is_fallback);
            })?

            $($crate::tests! {
                t27_refusals: trials::refusing::t27_refusals(&kit());
                t27_equal_buffers: trials::refusing::t27_equal_buffers($promised, $is_fallback);
            })?
        }
    };
}

/// Tests, each with its name and what it does; in a process of its own, where a number of seconds
/// says how long that may take.
#[macro_export]
macro_rules! tests {
    ($($test:ident $([$seconds:literal])?: $body:expr;)*) => {
        $(
            #[test]
            fn $test() {
                $crate::conformance::run(module_path!(), stringify!($test), &[$($seconds)?], || $body);
            }
        )*
    };
}

/// Runs a test, in a process of its own if there is a limit in seconds.
#[doc(hidden)]
#[track_caller]
pub fn run(module: &str, test: &str, limit: &[u64], body: impl FnOnce()) {
    match limit {
        [seconds] => process::alone(module, test, Duration::from_secs(*seconds), body),
        _ => body(),
    }
}

/// Tests that a kit has unless it is a variant of another one, which has a share.
#[doc(hidden)]
#[macro_export]
macro_rules! unless_variant {
    ([] $($tests:tt)*) => {
        $crate::tests! { $($tests)* }
    };
    ([$share:expr] $($tests:tt)*) => {};
}

/// The tests of a pool that wipes.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_wipes {
    ($make:expr) => {
        $crate::tests! {
            t11_wiped: $crate::ops::run_wiping($make);
        }

        #[cfg(target_os = "linux")]
        $crate::tests! {
            t35_no_secret_is_left_in_memory [120]: $crate::trials::secrets::t35_memory($make);
        }
    };
}

/// A module with a part of the suite: what each part has, and what else is given.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_part {
    ($name:ident, $pool:ty, $make:expr, $is_fallback:expr, $($more:tt)*) => {
        mod $name {
            #[allow(unused_imports, reason = "what the pool is made with")]
            use super::*;
            use $crate::trials;

            const KIT: $crate::Kit<$pool> = $crate::Kit {
                make: $make,
                is_fallback: $is_fallback,
                rejects: false,
                share: 5,
                trim: |_, _| {},
            };

            $crate::tests! {
                model: $crate::ops::run(&KIT);
                t01_traffic: trials::traffic::buffers(&KIT);
            }

            $($more)*
        }
    };
}

/// The part of the suite for a pool that is used through a shared reference: `name` is the module,
/// `pool` its type and how it is made. Not the whole suite, since such pools are leaked here and
/// some trials measure what stays.
#[macro_export]
macro_rules! conformance_by_reference {
    (name: $name:ident, pool: $pool:ty = $make:expr $(,)?) => {
        $crate::conformance_part! {
            $name, &'static $pool, || Box::leak(Box::new($make())), |_| false,
            $crate::tests! {
                t04_handover: trials::traffic::handover(&KIT);
                t08_threads_that_end: trials::lifetime::threads_end(&KIT);
                t17_counters: trials::serving::counters(&KIT, cfg!(feature = "stats"));
            }
        }
    };
}

/// The part of the suite for a pool that wipes and refuses nothing: `name` is the module, `pool`
/// its type and how it is made. Not the whole suite, since it would have to wipe the gigabytes of
/// T5.
#[macro_export]
macro_rules! conformance_wiping {
    (name: $name:ident, pool: $pool:ty = $make:expr $(,)?) => {
        $crate::conformance_part! {
            $name, $pool, $make, |buf| buf.lease().is_fallback(),
            $crate::tests! {
                t11_secrets: trials::secrets::filled_part_only(&KIT);
            }

            $crate::conformance_wipes! { KIT.make }
        }
    };
}

/// The trials of buffers that are split, for one pool: `pool` is its type and how it is made. For a
/// module with the trials that need pools of their own.
#[macro_export]
macro_rules! conformance_split {
    (pool: $pool:ty = $make:expr $(,)?) => {
        $crate::tests! {
            noted_again: $crate::trials::parts::noted_again::<$pool>($make, listed);
        }

        #[cfg(feature = "track")]
        fn listed(pool: &$pool) -> Option<usize> {
            Some(pool.outstanding().len())
        }

        #[cfg(not(feature = "track"))]
        fn listed(_pool: &$pool) -> Option<usize> {
            None
        }
    };
}
