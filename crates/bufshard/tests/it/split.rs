//! Buffers that are split: the trials of `buftest`, and what only this crate's pool lists.

use bufshard::ShardPool;
use buftest::trials::parts;

fn pool() -> ShardPool {
    ShardPool::new().expect("the allocator has room")
}

#[test]
fn at_every_index() {
    parts::at_every_index(pool);
}

#[test]
fn past_the_end() {
    parts::past_the_end(pool);
}

#[test]
fn in_every_order() {
    parts::in_every_order(pool);
}

#[test]
fn views_of_parts() {
    parts::views_of_parts(pool);
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

/// The list of what is out names a split buffer until its last part goes.
#[cfg(feature = "track")]
#[test]
fn tracked() {
    let pool = ShardPool::new().expect("the allocator has room");
    let mut front = pool.acquire(48).expect("room");
    let back = front.split_off(10);
    let view = front.freeze();
    assert_eq!(pool.outstanding().len(), 1);
    drop(view);
    assert_eq!(pool.outstanding().len(), 1);
    drop(back);
    assert_eq!(pool.outstanding().len(), 0);
}
