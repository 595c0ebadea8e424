//! A region that is given back and used again.

use alloc::vec;

use bufcore::{NoFallback, Region};

use crate::{Builder, SlotPool};

/// A pool of `slots` slots over all of `region`.
fn pool(region: Region, slots: usize) -> SlotPool<NoFallback> {
    Builder::new().slots(slots).build_in(region, NoFallback).expect("the region is large enough")
}

/// What the first pool kept of itself in the region, addresses and padding, is not lent out by the
/// second.
#[test]
fn nothing_is_left_of_the_bookkeeping() {
    // Every start within a slot's alignment, so that what is skipped in front differs.
    for skipped in 0..64 {
        let memory = &mut vec![0; 8192].leak()[skipped..];
        let mut first = pool(Region::from_static(memory), 100);
        drop((first.acquire(10), first.acquire(20)));
        let mut second = pool(first.into_region().expect("nothing is out"), 1);
        assert!(second.capacity() > 7500, "{} bytes", second.capacity());
        let mut buf = second.acquire(second.capacity()).expect("all of it");
        let found = buf.spare_mut().iter().position(|&byte| byte != 0);
        assert_eq!(found, None, "of the first pool, {skipped} bytes skipped");
    }
}
