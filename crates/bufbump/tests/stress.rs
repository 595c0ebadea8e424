//! Bump-pointer shards under load, for `cargo xtask stress`: handles of one pool on threads that
//! come and go, parts of buffers everywhere, trims and clears in between.

use bufbump::BumpPool;
use buftest::stress::pools::{Moment, Subject, round};
use buftest::stress::run;
use fastrand::Rng;

fn own(pool: &mut BumpPool, rng: &mut Rng, moment: Moment) {
    match rng.u8(..8) {
        0 => pool.clear(),
        1 | 2 => pool.trim(),
        3 if moment == Moment::Amid => drop(pool.clone()),
        4 => assert!(pool.stats().reserved_bytes < 1 << 30),
        _ => {
            // What is left of a large buffer moves out of it.
            if let Ok(mut buf) = pool.acquire(rng.usize(1..2000)) {
                drop(buf.split_off(buf.capacity() / 2));
                drop(pool.detach_if_pinning(buf, 2));
            }
        }
    }
}

/// Nothing is out, and all memory can go.
fn at_rest(pool: &mut BumpPool) {
    pool.trim();
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0), "counted as out");
    assert_eq!(stats.reserved_bytes, 0, "memory that no trim finds");
}

fn subject(shared: fn(&mut Rng) -> BumpPool) -> Subject<BumpPool, BumpPool> {
    Subject {
        shared,
        pool: BumpPool::clone,
        frames: |_| None,
        split: |buf, at| Some(buf.split_off(at)),
        own,
        at_rest,
    }
}

fn main() {
    let small = subject(|rng| {
        let bytes = [512, 2048, 5000][rng.usize(..3)];
        let builder = BumpPool::builder().shard_size(bytes).max_idle_bytes(4 * bytes);
        builder.build().expect("settings are right")
    });
    let default = subject(|_| BumpPool::new().expect("settings are right"));
    run("bump", &[("small-shards", &|one| round(&small, one)), ("default", &|one| round(&default, one))]);
}
