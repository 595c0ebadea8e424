//! What errors say, and what handles print of themselves.

use std::error::Error;

use bufcore::{ConfigError, HeapPool, NoFallback, Region, Writer};
use bufslot::{Builder, SlotPool};
use testkit::words::says;

#[test]
fn errors() {
    let region = || Region::heap(64, 16).expect("the heap has room");
    let refused = Builder::new().slots(999).build_in(region(), NoFallback).expect_err("too small");
    let text = format!("{refused:?}");
    assert!(text.starts_with("BuildInError { error: RegionTooSmall { required: "), "{text}");
    assert!(text.ends_with("region: Region { len: 64, backing: \"heap\", .. }, .. }"), "{text}");
    says(&refused, &["region too small", "64 bytes"]);
    assert!(refused.source().is_none(), "it prints as the error that it has");
    let error = refused.error;
    assert_eq!(ConfigError::from(refused), error);
    // More slots than there are numbers for: the region and the fallback come back.
    for slots in [usize::MAX, usize::MAX / 2] {
        let refused = Builder::new().slots(slots).build_in(region(), HeapPool::new()).expect_err("absurd");
        let is_refused = match refused.error {
            ConfigError::TooLarge { setting: "slots", requested, limit } => {
                requested == slots && limit < slots
            }
            _ => false,
        };
        assert!(is_refused && refused.region.len() == 64, "{refused}");
    }
}

/// Numbers and places, and never the bytes.
#[test]
fn handles_print_what_they_know() {
    let fallback = HeapPool::new().with_alignment(64).expect("a power of two");
    let mut pool = Builder::new().capacity(4096).slots(4).build_with(fallback).expect("settings are right");
    assert_eq!(format!("{:?}", pool.fallback()), "HeapPool { alignment: 64, .. }");
    let taken = |pool: &SlotPool<HeapPool>| format!("{pool:?}").matches('#').count();
    let before = taken(&pool);
    let mut buf = pool.acquire(10).expect("room");
    buf.extend_from_slice(b"secret").expect("room");
    assert_eq!(taken(&pool), before + 1);
    let text = format!("{pool:?}");
    let end = format!("capacity: {}, .. }}", pool.capacity());
    assert!(text.starts_with("SlotPool { mode: ") && text.ends_with(&end), "{text}");
    assert!(format!("{:?}", buf.lease()).starts_with("SlotLease { place: Slot("));
    drop(buf);
    assert_eq!(taken(&pool), before);
    let large = pool.acquire(10_000).expect("the fallback has room");
    assert!(format!("{:?}", large.lease()).starts_with("SlotLease { place: Fallback("));
    let none = pool.acquire(0).expect("no bytes are always there");
    assert_eq!(format!("{:?}", none.lease()), "SlotLease { place: Nowhere }");
    let mut writer = Writer::new(&mut pool);
    writer.extend_from_slice(b"secret").expect("room");
    writer.truncate(9);
    writer.truncate(4);
    let room = writer.writable(0).expect("no more").len();
    assert_eq!(
        (format!("{writer:?}"), writer.filled()),
        (format!("Writer {{ len: 4, room: {room}, .. }}"), &b"secr"[..])
    );
    writer.extend_from_slice(b"et").expect("room");
    assert_eq!(writer.finish(), b"secret");
}

/// A pool's own methods are those of its traits.
#[test]
fn the_own_methods_of_a_pool() {
    let mut pool = SlotPool::new(4096, 8).expect("settings are right");
    let mut small = pool.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    pool.grow(&mut small, 97).expect("room");
    assert_eq!(&small[..], b"abc");
    assert!(small.capacity() >= 100);
    pool.shrink(&mut small);
    assert_eq!(small.capacity(), 3);
}
