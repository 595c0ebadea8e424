//! T23: the global allocator comes back into a keeper.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bufcore::{Keeper, PressureSource};
use buftest::alloc::Reentrant;
use buftest::process::alone;
use buftest::trials::keeper::Nothing;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// In each call of the allocator in turn another pool is watched, and so in those of the keeper's looks.
#[test]
fn t23_pools_are_watched_within_the_allocator() {
    alone(module_path!(), "t23_pools_are_watched_within_the_allocator", Duration::from_secs(20), || {
        let pool = Arc::new(Nothing);
        for already in [0, 4, 8] {
            for before in 0.. {
                let mut keeper = Keeper::new().pressure(PressureSource::none());
                let handle = keeper.handle();
                for _ in 0..already {
                    handle.watch(&pool);
                }
                let now = Instant::now();
                let mut again = 0;
                let more = || {
                    again += 1;
                    handle.watch(&pool);
                };
                let calls = Reentrant::within(before, more, || {
                    handle.watch(&pool);
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
