//! T23: the global allocator comes back into a keeper.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bufkeeper::{Keeper, PressureSource};
use bufkit::GrowthSignal;
use buftest::alloc::Reentrant;
use buftest::process::alone;
use buftest::tasks::counting;
use buftest::trials::keeper::Nothing;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// In each call of the allocator in turn another pool is watched, and so in those of the keeper's
/// looks.
#[test]
fn t23_pools_are_watched_within_the_allocator() {
    alone(module_path!(), "t23_pools_are_watched_within_the_allocator", Duration::from_secs(20), || {
        let pools = [(); 32].map(|()| Arc::new(Nothing));
        for already in [0, 4, 8] {
            for before in 0.. {
                let mut keeper = Keeper::new().pressure(PressureSource::none());
                let handle = keeper.handle();
                pools[..already].iter().for_each(|pool| handle.watch(pool));
                let now = Instant::now();
                let mut again = 0;
                let more = || {
                    again += 1;
                    handle.watch(&pools[already + again]);
                };
                let calls = Reentrant::within(before, more, || {
                    handle.watch(&pools[already]);
                    keeper.tick(now);
                });
                keeper.tick(now);
                assert_eq!(keeper.watched(), already + 1 + again);
                if before > calls {
                    break;
                }
            }
        }
        ALLOCATOR.check();
    });
}

/// A bell gets another waker in each call of the allocator that arming it makes.
#[test]
fn t23_a_bell_is_armed_within_the_allocator() {
    alone(module_path!(), "t23_a_bell_is_armed_within_the_allocator", Duration::from_secs(20), || {
        for already in [0, 1, 2, 4] {
            for before in 0.. {
                let growth = GrowthSignal::default();
                let wakers: Vec<_> = (0..already + 2).map(|_| counting()).collect();
                let arm = |index: usize| growth.register(&wakers[index].1);
                assert!((0..already).all(arm));
                let (mut inner, mut outer) = (None, false);
                let calls =
                    Reentrant::within(before, || inner = Some(arm(already)), || outer = arm(already + 1));
                assert!(outer && inner != Some(false), "nothing is locked while the allocator is asked");
                growth.notify();
                let woken = already + 1 + usize::from(inner.is_some());
                assert_eq!(wakers.iter().map(|(wakes, _)| wakes.count()).sum::<usize>(), woken);
                if before > calls {
                    break;
                }
            }
        }
        ALLOCATOR.check();
    });
}
