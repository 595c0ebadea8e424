//! Operations on a pool whose strategy is chosen at run time, with a keeper beside it.

use bufcore::BufferPool;
use bufkeeper::Trim;
use bufworks::AnyPool;
use bufworks::any::AnyBuilder;
use testkit::bytes::Bytes;
use testkit::identities;
use testkit::lockstep::Lockstep;

use crate::drive::{Drive, End};
use crate::shared::Shared;

const POOLS: [&str; 20] = [
    "heap",
    "heap:alignment=256,wipe=true",
    "slot:capacity=4KiB,slots=9",
    "slot:capacity=20000,slots=30,alignment=64,stagger=false,wipe=true",
    "bounded-slot:capacity=3000,slots=5",
    "bounded-slot:capacity=64KiB,slots=64,wipe=true",
    "ring:capacity=5000,buffers=7",
    "ring:capacity=64KiB,buffers=20,alignment=128,wipe=true",
    "bump:shard_size=4KiB,max_idle_bytes=8KiB,max_probes=1",
    "bump:shard_size=20000,preallocate=2,alignment=32,wipe=true",
    "bump:shard_size=20000,alignment=1KiB,wipe=true",
    "shard:thread_cache=1,shards=1,shard_buffers=1,largest_pooled=3000",
    "shard:max_bytes=100000,alignment=64,wipe=true",
    "shard:map_options=populate,wipe=true",
    "shard:max_cached_bytes=0,shard_buffers=100",
    "shard:max_cached_bytes=30000,thread_cache=40,shard_buffers=0,shards=2",
    "bump:shard_size=2000,max_idle_bytes=1MiB,wipe=true",
    "bump",
    "bump:shard_size=20000,map_options=advise,wipe=true",
    "bump:shard_size=10000,map_options=populate,alignment=4KiB,max_idle_bytes=100000",
];

/// One of the texts, or a strategy that is in none of them, by its name.
fn pick(bytes: &mut Bytes<'_>) -> &'static str {
    let is_in = |text: &&str, name: &str| text.split(':').next() == Some(name);
    let others = AnyBuilder::NAMES.iter().filter(|name| !POOLS.iter().any(|text| is_in(text, name)));
    let texts: Vec<&'static str> = POOLS.iter().chain(others).copied().collect();
    texts[bytes.below(texts.len())]
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let end = End::of(bytes.byte());
    let builder: AnyBuilder = pick(&mut bytes).parse().expect("settings are right");
    let pool = builder.build().expect("settings are right");
    let mut lockstep = Lockstep::over(pool, true);
    let is_shared = lockstep.pool().share().is_some();
    if is_shared {
        // Memory that is idle elsewhere, or still on its way back, may be missed.
        lockstep.set_refusal(|error, asked| assert!(asked > 0, "{error}"));
    }
    let mut drive = Drive::new(lockstep);
    let mut shared = Shared::new(AnyPool::share);
    drive.run(&mut bytes, |drive, bytes| {
        let lockstep = &mut drive.lockstep;
        match bytes.below(8) {
            0 => sums(lockstep),
            1 => {
                let pool = lockstep.pool();
                let (_, _, _) = (pool.max_capacity(), pool.stats(), pool.strategy());
            }
            _ => shared.step(lockstep, bytes),
        }
    });
    shared.clear();
    if !end.pool_first && drive.release(end) {
        sums(&mut drive.lockstep);
        let stats = drive.lockstep.pool().stats();
        assert_eq!(stats.in_use, 0, "all was released: {stats:?}");
    }
    drive.finish(end);
    shared.end();
}

/// The counts add up, and a keeper sees the same.
fn sums(lockstep: &mut Lockstep<AnyPool>) {
    let own = lockstep.own_bytes(|buf| buf.lease().is_fallback());
    let (is_clear, pool) = (lockstep.is_clear(), lockstep.pool());
    let stats = pool.stats();
    identities::check(&stats, own, is_clear);
    assert_eq!(Trim::stats(pool), Some(stats));
}
