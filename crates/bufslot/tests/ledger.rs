//! Every byte of a pool goes back to the allocator, exactly once, with the layout that it was taken
//! with, and not while a buffer is out. A pool in its steady state does not call the allocator
//! at all.
//!
//! One after another, without the test harness: it allocates too.

use bufcore::{NoFallback, Region};
use bufslot::{Builder, SlotPool};
use testkit::alloc::Ledger;
use testkit::trials::books::Books;

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

const CAPACITY: usize = 1 << 16;

fn pool() -> SlotPool {
    SlotPool::new(CAPACITY, 64).expect("settings are right")
}

fn refused_and_given_back() {
    let region = Region::heap(100, 4096).expect("room");
    let refused = Builder::new().slots(100).build_in(region, NoFallback).expect_err("too small");
    assert_eq!(refused.region.len(), 100);
    let region = pool().into_region().expect("nothing is out");
    drop(region);
    let mut pool = pool();
    let buf = pool.acquire(1).expect("room");
    drop(pool.into_region().expect_err("a buffer is out"));
    drop(buf);
}

fn main() {
    let books = Books::of_regions(&LEDGER, pool, CAPACITY);
    books.check(&[("regions", |_| refused_and_given_back())], cfg!(not(feature = "track")));
}
