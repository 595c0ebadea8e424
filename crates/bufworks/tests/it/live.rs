//! What 1024 buffers that are out take with their pool, beside as many vectors: each strategy's
//! figures.

use std::time::Duration;

use bufworks::bump::BumpPool;
use bufworks::ring::RingPool;
use bufworks::shard::ShardPool;
use bufworks::slot::SlotPool;
use bufworks::{BufferPool, Lease};
use testkit::process::{alone, steady_allocator};
use testkit::trials::live::{LIVE, resident_each};

/// Resident bytes of each.
fn each<P: BufferPool<Lease: Lease>>(bytes: usize, pool: impl Fn() -> P) -> f64 {
    resident_each(bytes, pool, |pool| {
        let mut buf = pool.acquire(bytes).expect("room");
        buf.resize(bytes, 1).expect("asked for");
        buf
    })
}

/// Within 1.3 times the vectors. The region of a slot pool is rounded up to pages, which is more.
/// Notes of where buffers were acquired take more, and so do counters of each class and thread.
#[test]
fn resident_with_their_pool() {
    alone(module_path!(), "resident_with_their_pool", Duration::from_secs(60), || {
        steady_allocator();
        let more = match (cfg!(feature = "track"), cfg!(feature = "stats")) {
            (true, _) => 1.2,
            (false, true) => 0.1,
            (false, false) => 0.0,
        };
        for bytes in [64, 1024] {
            let of_vectors = resident_each(bytes, || (), |()| vec![1_u8; bytes]);
            println!("{bytes} bytes: a vector takes {of_vectors:.1}");
            // A pool that staggers has room in its region for that, which may be resident or not.
            let slot = SlotPool::builder().capacity(LIVE * bytes).slots(LIVE).stagger(false);
            let slot = || slot.build().expect("settings are right");
            let ring = || {
                RingPool::builder().capacity(LIVE * bytes).buffers(LIVE).build().expect("settings are right")
            };
            let strategies = [
                // A slot that counts, or knows how much to wipe, has twice as many bytes.
                (
                    "slot",
                    if cfg!(any(feature = "stats", feature = "wipe")) { 1.8 } else { 1.5 },
                    each(bytes, slot),
                ),
                ("ring", 1.3, each(bytes, ring)),
                ("bump", 1.3, each(bytes, || BumpPool::new().expect("settings are right"))),
                ("shard", 1.3, each(bytes, || ShardPool::new().expect("settings are right"))),
            ];
            for (name, most, takes) in strategies {
                println!(
                    "{bytes} bytes: a buffer of {name} takes {takes:.1}, {:.3} times that",
                    takes / of_vectors
                );
                let most = (most + more) * of_vectors;
                assert!(takes <= most, "{name}: {takes} of {bytes} bytes, {of_vectors} of a vector");
            }
        }
    });
}
