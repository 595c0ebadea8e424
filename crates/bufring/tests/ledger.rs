//! Every byte of a ring goes back to the allocator, exactly once, with the layout that it was taken
//! with, and not while a buffer is out. A ring in its steady state does not call the allocator
//! at all.
//!
//! One after another, without the test harness: it allocates too.
#![allow(clippy::std_instead_of_alloc, reason = "tests have an operating system")]

use bufcore::Region;
use bufring::{Builder, RingPool};
use testkit::alloc::Ledger;
use testkit::trials::books::{Books, Special, drop_elsewhere};

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

const CAPACITY: usize = 1 << 16;

fn ring() -> RingPool {
    RingPool::new(CAPACITY).expect("settings are right")
}

fn refused_and_given_back() {
    let region = Region::heap(100, 4096).expect("room");
    let refused = Builder::new().capacity(100).build_in(region).expect_err("too small");
    assert_eq!(refused.region.len(), 100);
    let region = ring().into_region().expect("nothing is out");
    drop(region);
    let mut ring = ring();
    let buf = ring.acquire(1).expect("room");
    drop(ring.into_region().expect_err("a buffer is out"));
    drop(buf);
}

/// Vectors outlive their ring, with what their values hold.
fn vectors() {
    let mut ring = ring();
    let mut strings = ring.acquire_vec(10).expect("room");
    for index in 0..10 {
        strings.push(index.to_string()).expect("room");
    }
    strings.remove(3);
    let mut rest = ring.acquire_vec(3).expect("room");
    rest.push(vec![1; 100]).expect("room");
    drop(ring);
    drop_elsewhere(strings).join().expect("dropping does not panic");
    let mut values = rest.into_iter();
    assert_eq!(values.next().map(|value| value.len()), Some(100));
}

fn main() {
    let books = Books::of_regions(&LEDGER, ring, CAPACITY);
    let special: [Special<RingPool>; 2] =
        [("regions", |_| refused_and_given_back()), ("vectors", |_| vectors())];
    books.check(&special, cfg!(not(feature = "track")));
}
