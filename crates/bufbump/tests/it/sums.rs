//! Statistics that add up after every step of generated programs.

use std::thread;

use bufbump::{BumpPool, PoolStats};
use testkit::lockstep::Lockstep;
use testkit::ops::Op;

/// Asserts what holds in the statistics of a pool that no other thread uses.
#[track_caller]
fn add_up(pool: &BumpPool) -> PoolStats {
    let stats = pool.stats();
    assert_eq!(stats.reserved_bytes, stats.pinned_bytes + stats.idle_bytes, "{stats:?}");
    if cfg!(feature = "stats") {
        assert!(stats.in_use_bytes <= stats.pinned_bytes, "{stats:?}");
    }
    stats
}

#[test]
fn after_every_step() {
    for round in 0..12 {
        let mut rng = fastrand::Rng::with_seed(round);
        let builder = BumpPool::builder()
            .shard_size(4096 - 64)
            .max_idle_bytes([0, 10_000, 1 << 20][round as usize % 3]);
        let pool = builder.preallocate(round as usize % 5).build().expect("settings are right");
        add_up(&pool);
        let mut lockstep = Lockstep::over(pool.clone(), false);
        for _ in 0..200 {
            let mut bytes = [0; 8];
            rng.fill(&mut bytes);
            match rng.u8(..32) {
                0 => pool.trim(),
                3 => pool.trim_idle(std::time::Duration::ZERO),
                4 => drop([5000, 5000, rng.usize(4097..20_000)].map(|bytes| pool.acquire(bytes))),
                2 => {
                    // A thread that ends leaves its shards to the pool.
                    let (pool, sizes) = (&pool, [rng.usize(..3000), rng.usize(..30_000)]);
                    let work = move || sizes.map(|bytes| pool.acquire(bytes).map(drop).is_ok());
                    thread::scope(|scope| {
                        let ended = scope.spawn(work).join();
                        assert!(ended.is_ok());
                    });
                }
                _ => lockstep.step(Op::decode(&mut testkit::bytes::Bytes::new(&bytes))),
            }
            add_up(&pool);
        }
        lockstep.drop_all();
        assert_eq!(add_up(&pool).pinned_bytes, 0);
        pool.trim();
        // The shard that the thread carves stays.
        let after = add_up(&pool);
        assert!(after.reserved_bytes <= 4096, "{after:?}");
    }
}

/// Whatever the alignment leaves of a shard, no more is out of it than it counts.
#[test]
fn full_shards_of_every_alignment() {
    for alignment in (0..=13).map(|bits| 1 << bits) {
        for bytes in [4096, 5000, 8192, 20_000] {
            for count in [1, 2, 3, 7] {
                let pool = BumpPool::builder().shard_size(bytes).alignment(alignment).max_probes(0);
                let pool = pool.build().expect("settings are right");
                let held = [(); 7].map(|()| pool.acquire(bytes / count).expect("the allocator has room"));
                let own: usize = held.iter().map(bufcore::Buf::capacity).sum();
                add_up(&pool);
                let stats = pool.stats();
                assert!(own <= stats.pinned_bytes, "{own} of {alignment} from {bytes}: {stats:?}");
            }
        }
    }
}
