//! The suite as `#[test]` functions for one strategy.

use std::time::Duration;

use bufcore::{Buf, BufferPool};

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
/// buftest::conformance! {
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

            /// A trial in its own process, with this many seconds.
            macro_rules! alone {
                ($test:literal, $seconds:expr, $body:expr) => {
                    $crate::process::alone(
                        module_path!(),
                        $test,
                        std::time::Duration::from_secs($seconds),
                        || $body,
                    )
                };
            }

            #[test]
            fn model() {
                $crate::ops::run(&kit());
            }

            #[test]
            fn t01_traffic() {
                trials::traffic::whole_buffers(&kit());
            }

            #[test]
            fn t02_every_way_to_make_a_buffer() {
                trials::traffic::every_way(&kit());
            }

            #[test]
            fn t03_failed_writes_change_nothing() {
                trials::failure::failed_writes(&kit());
            }

            #[test]
            fn t03_failed_frames_change_nothing() {
                trials::failure::failed_frames(&kit());
            }

            #[test]
            fn t04_handover() {
                trials::traffic::handover(&kit());
            }

            #[test]
            fn t05_absurd_requests() {
                alone!("t05_absurd_requests", 60, trials::failure::absurd_requests(&kit()));
            }

            #[test]
            fn t06_late_releases() {
                // Its threads wait for each other by yielding, which takes long beside others that
                // compute.
                alone!("t06_late_releases", 600, trials::lifetime::late_releases(&kit()));
            }

            #[test]
            fn t06_buffer_outlives_pool() {
                alone!("t06_buffer_outlives_pool", 60, trials::lifetime::outlives(&kit()));
            }

            #[test]
            fn t07_forgotten_handles() {
                alone!("t07_forgotten_handles", 60, trials::lifetime::forgotten(&kit()));
            }

            #[test]
            fn t08_threads_that_end() {
                alone!("t08_threads_that_end", 60, trials::lifetime::threads_end(&kit()));
            }

            #[test]
            fn t09_panicking_consumer() {
                alone!("t09_panicking_consumer", 60, trials::lifetime::panicking_consumer(&kit()));
            }

            #[test]
            fn t10_pools_in_turn() {
                trials::serving::pools_in_turn(&kit());
            }

            #[test]
            fn t11_secrets() {
                trials::secrets::filled_part_only(&kit());
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t12_memory() {
                alone!("t12_memory", 600, trials::memory::bounded(&kit()));
            }

            #[test]
            fn t13_one_held_for_ever() {
                trials::serving::one_held(&kit());
            }

            #[test]
            fn t14_disjoint() {
                trials::contents::disjoint(&kit());
            }

            #[test]
            fn t14_views_of_nothing() {
                trials::contents::views_of_nothing(&kit());
            }

            #[test]
            fn t14_empty_views() {
                trials::contents::empty_views(&kit());
            }

            #[test]
            fn t14_empty_frames() {
                trials::contents::empty_frames(&kit());
            }

            #[test]
            fn t15_mutators() {
                trials::contents::mutators(&kit());
            }

            #[test]
            fn t17_counters() {
                trials::serving::counters(&kit(), cfg!(feature = "stats"));
            }

            #[test]
            fn t31_capacity_is_what_was_asked_for() {
                trials::room::t31_exact(&kit());
            }

            #[test]
            fn t32_grown_and_compacted() {
                trials::room::t32_grown_and_compacted(&kit());
            }

            #[test]
            fn t33_frames_cut_short() {
                trials::room::t33_frames_cut_short(&kit());
            }

            #[test]
            fn t37_zeroed_buffers_are_zero() {
                trials::zeroed::t37_released(&kit());
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t19_soak() {
                alone!("t19_soak", 3600, trials::memory::soak(&kit()));
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t25_refused_calls() {
                alone!("t25_refused_calls", 120, trials::system::t25_refused_calls(&kit(), handle));
            }

            $crate::unless_variant! {
                [$($share)?]

                #[cfg(target_os = "linux")]
                #[test]
                fn t25_signals() {
                    alone!("t25_signals", 60, trials::system::t25_signals(&kit(), handle));
                }

                #[cfg(target_os = "linux")]
                #[test]
                fn t25_no_address_space() {
                    alone!("t25_no_address_space", 60, trials::system::t25_no_address_space(&kit(), handle));
                }
            }

            #[test]
            fn t34_sizes_at_thresholds() {
                $crate::ops::run_at_thresholds(&kit());
            }

            #[test]
            fn t34_counts_at_thresholds() {
                trials::thresholds::t34_counts(&kit());
            }

            #[test]
            fn t30_one_handle() {
                trials::erased::t30_one_handle(&kit());
            }

            $(
                #[test]
                fn t05_absurd_pools() {
                    alone!("t05_absurd_pools", 60, trials::failure::absurd_pools($sized));
                }

                #[cfg(target_os = "linux")]
                #[test]
                fn t18_failing_constructions() {
                    alone!("t18_failing_constructions", 60, trials::failure::failing_constructions($sized));
                }
            )?

            $(
                #[test]
                fn t14_alignment() {
                    trials::contents::alignment($aligned);
                }
            )?

            $(
                #[test]
                fn t11_wiped() {
                    trials::secrets::wiped($wiping);
                }

                #[cfg(target_os = "linux")]
                #[test]
                fn t35_no_secret_is_left_in_memory() {
                    alone!(
                        "t35_no_secret_is_left_in_memory",
                        120,
                        trials::secrets::t35_memory($wiping)
                    );
                }
            )?

            $(
                #[test]
                fn t21_hostile_fallback() {
                    trials::fallbacks::t21_hostile($over, $is_fallback);
                }

                #[test]
                fn t22_panicking_fallback() {
                    trials::fallbacks::t22_panics($over, $is_fallback);
                }
            )?

            $(
                #[test]
                fn t27_refusals() {
                    trials::refusing::t27_refusals(&kit());
                }

                #[test]
                fn t27_equal_buffers() {
                    trials::refusing::t27_equal_buffers($promised, $is_fallback);
                }
            )?
        }
    };
}

/// Tests that a kit has unless it is a variant of another one, which has a share.
#[doc(hidden)]
#[macro_export]
macro_rules! unless_variant {
    ([] $($test:item)*) => {
        $($test)*
    };
    ([$share:expr] $($test:item)*) => {};
}

/// A module with a part of the suite: what each part has, and the tests that are given.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_part {
    ($name:ident, $pool:ty, $make:expr, $is_fallback:expr, $($test:item)*) => {
        mod $name {
            #[allow(unused_imports, reason = "what the pool is made with")]
            use super::*;

            const KIT: $crate::Kit<$pool> = $crate::Kit {
                make: $make,
                is_fallback: $is_fallback,
                rejects: false,
                share: 5,
                trim: |_, _| {},
            };

            #[test]
            fn model() {
                $crate::ops::run(&KIT);
            }

            #[test]
            fn t01_traffic() {
                $crate::trials::traffic::whole_buffers(&KIT);
            }

            $($test)*
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

            #[test]
            fn t04_handover() {
                $crate::trials::traffic::handover(&KIT);
            }

            #[test]
            fn t08_threads_that_end() {
                $crate::trials::lifetime::threads_end(&KIT);
            }

            #[test]
            fn t17_counters() {
                $crate::trials::serving::counters(&KIT, cfg!(feature = "stats"));
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

            #[test]
            fn t11_secrets() {
                $crate::trials::secrets::filled_part_only(&KIT);
            }

            #[test]
            fn t11_wiped() {
                $crate::trials::secrets::wiped(KIT.make);
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t35_no_secret_is_left_in_memory() {
                $crate::process::alone(
                    module_path!(),
                    "t35_no_secret_is_left_in_memory",
                    std::time::Duration::from_secs(120),
                    || $crate::trials::secrets::t35_memory(KIT.make),
                );
            }
        }
    };
}

/// The trials of buffers that are split, for one pool: `pool` is its type and how it is made. For a
/// module with the trials that need pools of their own.
#[macro_export]
macro_rules! conformance_split {
    (pool: $pool:ty = $make:expr $(,)?) => {
        #[test]
        fn in_every_order() {
            $crate::trials::parts::in_every_order::<$pool>($make);
        }

        #[test]
        fn views_of_parts() {
            $crate::trials::parts::views_of_parts::<$pool>($make);
        }

        #[test]
        fn joined() {
            $crate::trials::parts::joined::<$pool>($make);
        }

        #[test]
        fn compacted() {
            $crate::trials::parts::compacted::<$pool>($make);
        }

        #[test]
        fn noted_again() {
            #[cfg(feature = "track")]
            let listed = |pool: &$pool| Some(pool.outstanding().len());
            #[cfg(not(feature = "track"))]
            let listed = |_: &$pool| None;
            $crate::trials::parts::noted_again::<$pool>($make, listed);
        }

        /// Checks that the list of what is out names a split buffer until its last part goes.
        #[cfg(feature = "track")]
        #[test]
        fn tracked() {
            let make: fn() -> $pool = $make;
            let mut pool = make();
            let mut front = $crate::bufcore::BufferPool::acquire(&mut pool, 48).expect("room");
            let back = front.split_off(10);
            let view = front.freeze();
            assert_eq!(pool.outstanding().len(), 1);
            drop(view);
            assert_eq!(pool.outstanding().len(), 1);
            drop(back);
            assert_eq!(pool.outstanding().len(), 0);
        }
    };
}
