//! Buffers that are split.

use bufring::RingPool;
use testkit::trials::parts;

testkit::conformance_split! {
    pool: RingPool = || RingPool::new(1 << 16).expect("settings are right"),
}

#[test]
fn many_parts() {
    parts::many_parts(RingPool::new(1 << 16).expect("settings are right"));
}

#[test]
fn late() {
    parts::large_and_late(RingPool::new(256).expect("settings are right"), |_| true, 1);
}

#[cfg(feature = "wipe")]
#[test]
fn wiped() {
    parts::wiped(RingPool::builder().capacity(4096).wipe(true).build().expect("settings are right"));
}
