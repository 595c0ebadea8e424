//! Buffers that are split: the trials of `testkit`, and what only this crate's pool lists.

use bufshard::ShardPool;
use testkit::trials::parts;

fn pool() -> ShardPool {
    ShardPool::new().expect("the allocator has room")
}

testkit::conformance_split! {
    pool: ShardPool = pool,
}

#[test]
fn many_parts() {
    let pool = pool();
    parts::many_parts(pool.clone());
    pool.trim();
    assert_eq!((pool.stats().in_use, pool.stats().reserved_bytes), (0, 0));
}

#[test]
fn large_and_late() {
    let pool = ShardPool::builder().smallest_pooled(4096).build().expect("settings are right");
    parts::large_and_late(pool, |buf| buf.lease().is_fallback(), usize::from(cfg!(feature = "stats")));
}

#[cfg(feature = "wipe")]
#[test]
fn wiped() {
    parts::wiped(ShardPool::builder().wipe(true).build().expect("settings are right"));
}
