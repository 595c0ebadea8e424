//! Bump-pointer shards under load: handles of one pool on threads that
//! come and go, parts of buffers everywhere, trims and clears in between. There are phases with a
//! keeper beside them.

use bufbump::BumpPool;
use fastrand::Rng;
use testkit::stress::keeper::Kept;
use testkit::stress::pools::{Moment, Subject, all_goes, round};
use testkit::stress::run;

fn own(pool: &mut BumpPool, rng: &mut Rng, moment: Moment) {
    match rng.u8(..8) {
        0 => pool.trim(),
        1 => pool.trim(),
        2 => pool.trim_idle(core::time::Duration::ZERO),
        3 if moment == Moment::Amid => drop(pool.clone()),
        4 => assert!(pool.stats().reserved_bytes < 1 << 30),
        _ => {
            // The rest of a large buffer moves out of it.
            if let Ok(mut buf) = pool.acquire(rng.usize(1..2000)) {
                drop(buf.split_off(buf.capacity() / 2));
                drop(pool.evacuate(buf, 2));
            }
        }
    }
}

fn main() {
    let small = |rng: &mut Rng| {
        let bytes = [512, 2048, 5000][rng.usize(..3)];
        let builder = BumpPool::builder().shard_size(bytes).max_idle_bytes(4 * bytes);
        builder.build().expect("settings are right")
    };
    let small = Subject::shared(small, own, all_goes);
    let default = Subject::shared(|_| BumpPool::new().expect("settings are right"), own, all_goes);
    let keeper = Subject::kept(|rng| {
        let builder = BumpPool::builder().shard_size([2048, 20_000, 256 << 10][rng.usize(..3)]);
        Kept::new(builder.build().expect("settings are right"))
    });
    run(
        "bump",
        &[
            ("small-shards", &|one| round(&small, one)),
            ("default", &|one| round(&default, one)),
            ("keeper", &|one| round(&keeper, one)),
        ],
    );
}
