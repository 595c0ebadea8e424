//! Pages that go back to the system while the pool is in use (`testkit::trials::pages`).

#![cfg(all(feature = "mmap", target_os = "linux"))]

use std::time::Duration;

use bufcore::{MapOptions, NoFallback, Region};
use bufslot::{Builder, SlotPool};
use testkit::process::alone;
use testkit::trials::pages;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(120);

/// A pool of 64 MiB.
fn large() -> SlotPool<NoFallback> {
    SlotPool::builder().capacity(64 * MIB).slots(2000).build_with(NoFallback).expect("settings are right")
}

#[test]
fn resident_after_a_burst() {
    alone(module_path!(), "resident_after_a_burst", LIMIT, || pages::after_a_burst(large(), 60 * MIB));
}

#[test]
fn resident_in_a_mapping() {
    alone(module_path!(), "resident_in_a_mapping", LIMIT, || {
        let region = Region::mapped(64 * MIB, MapOptions::new()).expect("the system maps");
        let pool = Builder::new().slots(100).build_in(region, NoFallback).expect("settings are right");
        pages::after_a_burst(pool, 60 * MIB);
    });
}

#[test]
fn resident_around_survivors() {
    alone(module_path!(), "resident_around_survivors", LIMIT, || {
        pages::around_survivors(large(), 60 * MIB);
    });
}

#[test]
fn resident_kept_in_a_mutex() {
    alone(module_path!(), "resident_kept_in_a_mutex", LIMIT, || {
        pages::kept_in_a_mutex(large(), 60 * MIB);
    });
}

#[test]
fn nothing_is_refused() {
    for (slots, alignment) in [(2, 1), (8, 64), (100, 4096)] {
        let builder = SlotPool::builder().capacity(4 * MIB).slots(slots).alignment(alignment);
        let pool = builder.build_with(NoFallback).expect("settings are right");
        pages::nothing_is_refused(pool, 4 * MIB);
    }
}

/// A trim changes nothing that a program sees.
#[test]
fn idle_all_the_time() {
    let mut pool =
        SlotPool::builder().capacity(MIB).slots(4).build_with(NoFallback).expect("settings are right");
    let mode = pool.mode();
    pool.trim();
    assert!(pool.is_idle() && pool.stats().in_use == 0 && pool.mode() == mode);
    assert!((0..4).all(|slot| !pool.is_taken(slot)), "{pool:?}");
    assert!(format!("{pool:?}").contains("----"), "{pool:?}");
    let all: Vec<_> = (0..4).map(|_| pool.acquire(MIB / 5).expect("a slot and room")).collect();
    pool.trim();
    drop(all);
    pool.trim();
    assert!(pool.into_region().is_ok());
}

/// Memory of the program's own is left alone.
#[test]
fn not_of_a_static_region() {
    let memory: &'static mut [u8] = Box::leak(vec![0; MIB].into());
    let mut pool = Builder::new().slots(4).build_in(Region::from_static(memory), NoFallback).expect("room");
    let mut buf = pool.acquire(MIB / 2).expect("room");
    buf.spare_mut().fill(7);
    drop(buf);
    pool.trim();
    assert_eq!(pool.acquire(MIB / 2).expect("room").spare_mut(), vec![7; MIB / 2]);
}
