//! Buffers that are split: the trials of `testkit`, and what only this crate's pool lists.

use bufbump::BumpPool;
use testkit::trials::parts;

fn pool() -> BumpPool {
    BumpPool::new().expect("the allocator has room")
}

testkit::conformance_split! {
    pool: BumpPool = pool,
}

#[test]
fn many_parts() {
    parts::many_parts(pool());
}

#[test]
fn large_and_late() {
    let pool = BumpPool::builder().shard_size(32).build().expect("settings are right");
    parts::large_and_late(pool, |buf| buf.lease().is_fallback(), 1);
}

#[cfg(feature = "wipe")]
#[test]
fn wiped() {
    parts::wiped(BumpPool::builder().shard_size(48).wipe(true).build().expect("settings are right"));
}
