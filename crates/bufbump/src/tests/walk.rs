//! Walks over random requests and releases that check the invariants of the thread's cache and its
//! shards after every step.

use alloc::vec::Vec;

use crate::BumpPool;
use crate::cache::local;

fn walk(seed: u64, shard: usize, probes: usize, idle: usize, alignment: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let pool =
        BumpPool::builder().shard_size(shard).max_probes(probes).max_idle_bytes(idle).alignment(alignment);
    let pool = pool.build().expect("settings are right");
    let mut held = Vec::new();
    let mut elsewhere = Vec::new();
    for step in 0..2000_usize {
        let stamp = step as u8;
        match random.u8(..100) {
            0..=44 => {
                let most = [5 * shard, shard][usize::from(step % 32 != 0)];
                let bytes = random.usize(1..=if step % 16 == 0 { most } else { shard / 6 + 1 });
                let mut buf = pool.acquire(bytes).expect("the allocator has room");
                buf.resize(bytes, stamp).expect("asked for");
                assert_eq!(buf.as_ptr().addr() % alignment, 0, "seed {seed} step {step}");
                held.push((buf, stamp));
            }
            45..=64 if !held.is_empty() => drop(held.swap_remove(random.usize(..held.len()))),
            // The newest, so that the pointer goes back.
            65..=74 => drop(held.pop()),
            // By another thread, several at once.
            75..=84 if !held.is_empty() => elsewhere.push(held.swap_remove(random.usize(..held.len()))),
            85 => {
                let bufs = core::mem::take(&mut elsewhere);
                std::thread::spawn(move || drop(bufs)).join().expect("dropping does not panic");
            }
            86 if step % 8 == 0 => pool.trim(),
            88 => held.truncate(2),
            89 if step % 4 == 0 => pool.trim_idle(core::time::Duration::ZERO),
            _ => {}
        }
        if let Some(cache) = local::find(pool.id()) {
            cache.check();
        }
        for (buf, stamp) in &held {
            assert!(buf.iter().all(|byte| byte == stamp), "seed {seed} step {step}");
        }
        assert_eq!(pool.stats().in_use, held.len() + elsewhere.len(), "seed {seed} step {step}");
    }
    drop((held, elsewhere));
    pool.trim();
    assert_eq!(pool.stats().pinned_bytes, 0);
    assert_eq!(pool.stats().reserved_bytes, pool.shared().settings.span_bytes, "the current shard alone");
}

#[test]
fn invariants_hold_on_random_walks() {
    for seed in 1..=if cfg!(debug_assertions) { 5 } else { 20 } {
        walk(seed, 512, 0, 0, 8);
        walk(seed, 512, 2, 8192, 16);
        walk(seed, 4096, 4, 1 << 20, 64);
        walk(seed, 100, 8, 3 * 4096, 8);
        walk(seed, 1, 1, 4, 128);
        // At alignments of which a header takes little.
        walk(seed, 8192, 2, 1 << 20, 512);
        walk(seed, 5000, 4, 5000, 1024);
    }
}
