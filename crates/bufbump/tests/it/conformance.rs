//! The suite over bump pools: as they are, tight, aligned, mapped, through a shared
//! reference, and wiping.

use bufbump::{Builder, BumpPool};

fn built(builder: Builder) -> BumpPool {
    builder.build().expect("settings are right")
}

testkit::conformance! {
    name: default,
    pool: BumpPool = || built(BumpPool::builder().preallocate(1)),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
    sized: |bytes| BumpPool::builder().shard_size(bytes).max_idle_bytes(usize::MAX).preallocate(1).build(),
    aligned: |bytes| BumpPool::builder().shard_size(64 << 10).alignment(bytes).build(),
}

// Shards that few buffers fit into, none of which is kept, and no probes.
testkit::conformance! {
    name: tight,
    pool: BumpPool = || built(BumpPool::builder().shard_size(8 << 10).max_idle_bytes(0).max_probes(0).alignment(8)),
    is_fallback: |_| false,
    rejects: false,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
    aligned: |bytes| BumpPool::builder().shard_size(100).alignment(bytes).build(),
}

// With larger alignments.
testkit::conformance! {
    name: pages,
    pool: BumpPool = || built(BumpPool::builder().shard_size(64 << 10).alignment(512)),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    handle: |pool| Some(pool.clone()),
    trim: testkit::trials::trim,
    sized: |bytes| BumpPool::builder().shard_size(bytes).alignment(4096).max_idle_bytes(usize::MAX).preallocate(1).build(),
    aligned: |bytes| BumpPool::builder().shard_size(300 << 10).alignment(bytes).build(),
}

// Mappings with options, which go back as wholes.
#[cfg(feature = "mmap")]
testkit::conformance_by_reference! {
    name: mapped,
    pool: BumpPool = || built(BumpPool::builder().shard_size(20_000).map_options(huge())),
}

#[cfg(feature = "mmap")]
fn huge() -> bufbump::MapOptions {
    bufbump::MapOptions::new().huge_pages(bufbump::HugePages::Advise)
}

testkit::conformance_by_reference! {
    name: by_reference,
    pool: BumpPool = || built(BumpPool::builder().shard_size(16 << 10).max_idle_bytes(64 << 10)),
}

#[cfg(feature = "wipe")]
testkit::conformance_wiping! {
    name: wiping,
    pool: BumpPool = || built(BumpPool::builder().shard_size(20_000).wipe(true)),
}

#[cfg(feature = "wipe")]
testkit::conformance_wiping! {
    name: wiping_pages,
    pool: BumpPool = || built(BumpPool::builder().shard_size(20_000).alignment(1024).wipe(true)),
}
