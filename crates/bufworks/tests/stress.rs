//! Pools whose strategy is chosen at run time, under load: a round has
//! pools of one strategy.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::Mutex;

use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, SettingError};
use testkit::stress::pools::{Subject, round};
use testkit::stress::run;

/// A pool that threads share, or how each makes its own.
enum Shared {
    One(Box<Mutex<AnyPool>>),
    Each(&'static str),
}

fn built(name: &str) -> AnyPool {
    let mut builder = AnyBuilder::named(name).expect("there is such a strategy");
    for (setting, value) in [("capacity", "128KiB"), ("slots", "40"), ("buffers", "40")] {
        // Those that take their memory as they need it have no such setting.
        if let Err(error) = builder.set(setting, value) {
            assert!(matches!(error, SettingError::UnknownSetting { .. }), "{error}");
        }
    }
    builder.build().expect("settings are right")
}

fn main() {
    let any = Subject::<AnyPool, Shared> {
        shared: |rng| {
            let name = AnyBuilder::NAMES[rng.usize(..AnyBuilder::NAMES.len())];
            let pool = built(name);
            if pool.share().is_some() { Shared::One(Box::new(Mutex::new(pool))) } else { Shared::Each(name) }
        },
        pool: |shared| match shared {
            Shared::One(pool) => {
                pool.lock().expect("nobody panics with it").share().expect("it was shared before")
            }
            Shared::Each(name) => built(name),
        },
        own: |pool, _, _| pool.trim(),
        at_rest: |pool| {
            pool.trim();
            assert_eq!(bufworks::BufferPool::stats(pool).in_use, 0, "counted as out");
        },
    };
    run("any", &[("any", &|one| round(&any, one))]);
}
