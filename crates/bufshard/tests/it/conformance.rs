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

testkit::conformance! {
    name: default,
    pool: ShardPool = || built(ShardPool::builder()),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
    sized: sized,
    aligned: |bytes| ShardPool::builder().alignment(bytes).build(),
}

// No caches to speak of, one shard with one place, and a small largest class.
testkit::conformance! {
    name: tight,
    pool: ShardPool = || built(ShardPool::builder().thread_cache(1).shards(1).shard_buffers(1).largest_pooled(3000)),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
    aligned: |bytes| ShardPool::builder().thread_cache(0).alignment(bytes).build(),
}

// Headers apart from the bytes.
testkit::conformance! {
    name: pages,
    pool: ShardPool = || built(ShardPool::builder().alignment(4096)),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    share: 5,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
}

// Mappings with options, which go back as wholes.
#[cfg(feature = "mmap")]
testkit::conformance_by_reference! {
    name: mapped,
    pool: ShardPool = || built(ShardPool::builder().map_options(huge()).shard_buffers(2)),
}

#[cfg(feature = "mmap")]
fn huge() -> bufshard::MapOptions {
    bufshard::MapOptions::new().huge_pages(bufshard::HugePages::Advise)
}

testkit::conformance_by_reference! {
    name: by_reference,
    pool: ShardPool = || built(ShardPool::builder().thread_cache(2).shard_buffers(4)),
}

#[cfg(feature = "wipe")]
testkit::conformance_wiping! {
    name: wiping,
    pool: ShardPool = || built(ShardPool::builder().largest_pooled(20_000).wipe(true)),
}

#[cfg(feature = "wipe")]
testkit::conformance_wiping! {
    name: wiping_pages,
    pool: ShardPool = || built(ShardPool::builder().largest_pooled(20_000).alignment(4096).wipe(true)),
}
