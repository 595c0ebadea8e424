//! The suite over sharded pools: as they are, tight, through a shared reference, and wiping.

use bufshard::bufcore::Error;
use bufshard::{Builder, ShardPool};

fn built(builder: Builder) -> ShardPool {
    builder.build().expect("settings are right")
}

/// A pool with one buffer of that size in it.
fn sized(bytes: usize) -> Result<ShardPool, Error> {
    let pool = ShardPool::builder().largest_pooled(bytes).build()?;
    pool.preallocate(1, bytes)?;
    Ok(pool)
}

buftest::conformance! {
    name: default,
    pool: ShardPool = || built(ShardPool::builder()),
    frames: |_| None,
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    sized: sized,
    aligned: |bytes| ShardPool::builder().alignment(bytes).build(),
}

// No caches to speak of, one shard with one place, and a small largest class.
buftest::conformance! {
    name: tight,
    pool: ShardPool = || built(ShardPool::builder().thread_cache(1).shards(1).shard_buffers(1).largest_pooled(3000)),
    frames: |_| None,
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    aligned: |bytes| ShardPool::builder().thread_cache(0).alignment(bytes).build(),
}

buftest::conformance_by_reference! {
    name: by_reference,
    pool: ShardPool = || built(ShardPool::builder().thread_cache(2).shard_buffers(4)),
}

/// Not the whole suite: a pool that refuses nothing would have to wipe the gigabytes of T5.
#[cfg(feature = "wipe")]
mod wiping {
    use bufshard::ShardPool;
    use buftest::{Kit, ops, trials};

    const KIT: Kit<ShardPool> = Kit {
        make: || ShardPool::builder().largest_pooled(20_000).wipe(true).build().expect("settings are right"),
        frames: |_| None,
        is_fallback: |buf| buf.lease().is_fallback(),
        rejects: false,
        share: 5,
    };

    #[test]
    fn model() {
        ops::run(&KIT);
    }

    #[test]
    fn t01_traffic() {
        trials::traffic::whole_buffers(&KIT);
    }

    #[test]
    fn t11_secrets() {
        trials::secrets::filled_part_only(&KIT);
    }

    #[test]
    fn t11_wiped() {
        trials::secrets::wiped(KIT.make, |_| None);
    }
}
