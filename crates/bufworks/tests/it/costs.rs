//! What a request costs where there are many pools.

use bufworks::bump::BumpPool;
use bufworks::shard::ShardPool;
use testkit::trials::many;

/// Room for one thread's small buffers, since there are thousands.
fn shard() -> ShardPool {
    ShardPool::builder().shards(1).largest_pooled(256).build().expect("settings are right")
}

fn bump() -> BumpPool {
    BumpPool::builder().shard_size(64).build().expect("settings are right")
}

/// Each pool's list of buffers and counters are memory of their own, of which thousands are in no
/// cache of the processor.
const MOST: u32 = if cfg!(any(feature = "stats", feature = "track")) { 24 } else { 8 };

#[test]
fn t26_pools_in_turn_shard() {
    many::pools_in_turn(shard, MOST);
}

/// Each request is larger than what is left of the shard, so each looks for the thread's cache.
#[test]
fn t26_pools_in_turn_bump() {
    many::pools_in_turn(bump, 4);
}
