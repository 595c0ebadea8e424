//! Pages that go back to the system while the ring is in use (`testkit::trials::pages`).

#![cfg(all(feature = "mmap", target_os = "linux"))]

use std::time::Duration;

use bufcore::{MapOptions, Region};
use bufring::{Builder, LocalAcquire, LocalRing, RingPool, Writer};
use testkit::process::{alone, resident_bytes, steady_allocator};
use testkit::trials::pages;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(120);

/// A ring of 64 MiB.
fn large(alignment: usize) -> RingPool {
    let builder = RingPool::builder().capacity(64 * MIB).buffers(2000).alignment(alignment);
    builder.build().expect("settings are right")
}

testkit::conformance! {
    name: aligned_to_pages,
    pool: RingPool = || {
        let builder = RingPool::builder().capacity(4 << 20).buffers(64).alignment(4096);
        builder.build().expect("settings are right")
    },
    is_fallback: |_| false,
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
}

#[test]
fn resident_after_a_burst() {
    alone(module_path!(), "resident_after_a_burst", LIMIT, || pages::after_a_burst(large(1), 60 * MIB));
}

#[test]
fn resident_aligned_to_pages() {
    alone(module_path!(), "resident_aligned_to_pages", LIMIT, || {
        pages::after_a_burst(large(4096), 60 * MIB);
        pages::around_survivors(large(4096), 60 * MIB);
    });
}

#[test]
fn resident_in_a_mapping() {
    alone(module_path!(), "resident_in_a_mapping", LIMIT, || {
        let region = Region::mapped(64 * MIB, MapOptions::new()).expect("the system maps");
        pages::after_a_burst(Builder::new().build_in(region).expect("settings are right"), 60 * MIB);
    });
}

#[test]
fn resident_around_survivors() {
    alone(module_path!(), "resident_around_survivors", LIMIT, || {
        pages::around_survivors(large(1), 60 * MIB);
    });
}

#[test]
fn resident_kept_in_a_mutex() {
    alone(module_path!(), "resident_kept_in_a_mutex", LIMIT, || {
        pages::kept_in_a_mutex(large(1), 60 * MIB);
    });
}

/// A thread trims its own.
#[test]
fn resident_local() {
    thread_local! {
        static RING: LocalRing = const { LocalRing::new(64 * MIB) };
    }
    alone(module_path!(), "resident_local", LIMIT, || {
        steady_allocator();
        let before = resident_bytes();
        let mut buf = RING.acquire(60 * MIB).expect("room");
        buf.resize(60 * MIB, 1).expect("room");
        drop(buf);
        assert!(resident_bytes() > before + 59 * MIB);
        RING.with_ring(RingPool::trim).expect("the ring is built");
        assert!(resident_bytes() < before + 2 * MIB);
    });
}

#[test]
fn nothing_is_refused() {
    for (buffers, alignment) in [(2, 1), (8, 64), (100, 4096)] {
        let builder = RingPool::builder().capacity(4 * MIB).buffers(buffers).alignment(alignment);
        pages::nothing_is_refused(builder.build().expect("settings are right"), 4 * MIB);
    }
}

/// A trim changes nothing that a program sees; a buffer that grows takes in what was trimmed.
#[test]
fn idle_all_the_time() {
    let mut ring = RingPool::new(MIB).expect("settings are right");
    ring.trim();
    assert!(ring.is_idle() && ring.stats().in_use == 0, "{ring:?}");
    assert!(format!("{ring:?}").contains("blocks_out: 0"), "{ring:?}");
    let mut line = Writer::new(&mut ring);
    while line.filled().len() < MIB / 4 {
        line.extend_from_slice(&[1; 1000]).expect("room");
    }
    assert!(line.filled().iter().all(|&byte| byte == 1));
    drop(line);
    ring.trim();
    drop(ring.acquire(MIB).expect("all of it"));
    ring.trim();
    assert!(ring.into_region().is_ok());
}

/// Memory of the program's own is left alone.
#[test]
fn not_of_a_static_region() {
    let memory: &'static mut [u8] = Box::leak(vec![0; MIB].into());
    let mut ring = Builder::new().build_in(Region::from_static(memory)).expect("room");
    let mut buf = ring.acquire(MIB / 2).expect("room");
    buf.spare_mut().fill(7);
    drop(buf);
    ring.trim();
    assert_eq!(ring.acquire(MIB / 2).expect("room").spare_mut(), vec![7; MIB / 2]);
}

/// A free block at the front of every size around what is left there: as many bytes, fewer, and so
/// many more that the rest is a guard alone. And a live block that is the last one, behind it.
#[test]
fn trim_keeps_live_buffers() {
    const FIRST: usize = 16 << 10;
    for alignment in [1, 16, 64, 512, 4096] {
        for first in (FIRST - 40..FIRST + 40).chain([4096, 20_000, FIRST + 4096, FIRST + 8192]) {
            for last in [1000, 40_000] {
                let builder = RingPool::builder().capacity(256 << 10).buffers(8).alignment(alignment);
                let mut ring = builder.build().expect("settings are right");
                let at_front = ring.acquire(first).expect("room");
                let mut kept = ring.acquire(last).expect("room");
                kept.resize(last, 0xa5).expect("room");
                drop(at_front);
                ring.trim();
                let mut others = Vec::new();
                for size in [200_000, 20_000, 1000, 100, 1] {
                    while let Ok(mut other) = ring.acquire(size) {
                        other.resize(size, 0x5a).expect("room");
                        others.push(other);
                    }
                }
                let lost = kept.iter().filter(|&&byte| byte != 0xa5).count();
                assert_eq!(lost, 0, "bytes of a live buffer, behind one of {first}, alignment {alignment}");
            }
        }
    }
}
