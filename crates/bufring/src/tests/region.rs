//! A region that is given back and used again.

use alloc::vec;

use bufcore::Region;

use crate::{Builder, RingPool};

fn ring(region: Region) -> RingPool {
    Builder::new().build_in(region).expect("the region is large enough")
}

/// What the first ring kept of itself in the region, addresses and padding, is not lent out by the
/// second.
#[test]
fn nothing_is_left_of_the_bookkeeping() {
    // Every start within an alignment of the control block, so that what is skipped in front
    // differs.
    for skipped in 0..64 {
        let memory = &mut vec![0; 8192].leak()[skipped..];
        let mut first = ring(Region::from_static(memory));
        drop((first.acquire(10), first.acquire(20), first.acquire(3000)));
        let mut second = ring(first.into_region().expect("nothing is out"));
        assert!(second.capacity() > 7500, "{} bytes", second.capacity());
        let mut buf = second.acquire(second.capacity()).expect("all of it");
        let found = buf.spare_mut().iter().position(|&byte| byte != 0);
        assert_eq!(found, None, "of the first ring, {skipped} bytes skipped");
    }
}

/// What was a guard in between does not show in what an allocator that wipes hands out.
#[cfg(feature = "wipe")]
#[test]
fn former_guards_are_wiped() {
    let mut ring = RingPool::builder().capacity(8192).wipe(true).build().expect("settings are right");
    for round in 0..200_usize {
        let held =
            [ring.acquire(1 + round), ring.acquire(50), ring.acquire(3 * round + 1), ring.acquire(700)];
        drop(held);
        let capacity = ring.capacity();
        let mut all = ring.acquire(capacity).expect("nothing is out");
        let found = all.spare_mut().iter().position(|&byte| byte != 0);
        assert_eq!(found, None, "in round {round}");
    }
}
