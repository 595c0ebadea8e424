//! Zeroed buffers: all zero, whatever was in the memory before, and not written to where it was
//! new.

use std::collections::VecDeque;
use std::thread;

use bufbump::{Builder, BumpPool};

fn built(builder: Builder) -> BumpPool {
    builder.build().expect("settings are right")
}

/// Buffers come back in any order, on any thread, amid trims, to a pool with shards from the start.
#[test]
fn zero_after_anything() {
    for (round, alignment) in [(0, 16), (1, 16), (2, 64), (3, 1024), (4, 4096)] {
        let mut rng = fastrand::Rng::with_seed(round);
        let builder = BumpPool::builder().shard_size(64 << 10).alignment(alignment).preallocate(3);
        let pool = built(builder.max_idle_bytes([0, 1 << 20, 4 << 20][round as usize % 3]));
        let mut held = VecDeque::new();
        for step in 0..600 {
            let len = if step % 16 == 0 { rng.usize(..200_000) } else { rng.usize(..9000) };
            let mut buf = pool.acquire_zeroed(len).expect("the allocator has room");
            assert_eq!(buf.len(), len);
            assert!(buf.iter().all(|byte| *byte == 0), "round {round}, step {step}, {len} bytes");
            buf.fill(0xA5);
            match rng.u8(..16) {
                0..=4 => drop(buf),
                5 => thread::scope(|scope| _ = scope.spawn(move || drop(buf)).join()),
                6 => {
                    drop(buf);
                    held.clear();
                }
                7 => {
                    drop(held.pop_back());
                    held.push_back(buf);
                }
                8 => {
                    drop(held.pop_front());
                    held.push_back(buf);
                }
                9 if step % 4 == 0 => pool.trim(),
                11 => {
                    let theirs = pool.clone();
                    // Its shard goes to the pool, with what is in it.
                    let ended = thread::spawn(move || theirs.acquire_zeroed(5000).map(|mut buf| buf.fill(7)));
                    ended.join().expect("the thread ends well").expect("the allocator has room");
                    held.push_back(buf);
                }
                _ => held.push_back(buf),
            }
            held.truncate(20);
        }
    }
}

/// New memory is not written to.
#[cfg(target_os = "linux")]
mod resident {
    use std::time::Duration;

    use testkit::process::{alone, resident_bytes, steady_allocator};

    use super::*;

    const MIB: usize = 1 << 20;
    const LIMIT: Duration = Duration::from_secs(60);

    /// Bytes that become resident when `make` is called, and what it made is kept.
    fn grows_by<T>(make: impl FnOnce() -> T) -> usize {
        let before = resident_bytes();
        let made = make();
        let grown = resident_bytes().saturating_sub(before);
        drop(made);
        grown
    }

    /// New memory of requests larger than a shard is zero as it comes.
    #[test]
    fn new_memory_is_not_filled() {
        alone(module_path!(), "new_memory_is_not_filled", LIMIT, || {
            steady_allocator();
            let builder = BumpPool::builder().shard_size(16 * MIB);
            for builder in [builder, builder.alignment(4096)] {
                let pool = built(builder);
                let take = || pool.acquire_zeroed(64 * MIB).expect("room");
                let new = grows_by(take);
                assert!(new < MIB, "{new} bytes were written to, {builder}");
                take().fill(1);
                assert!(take().iter().all(|byte| *byte == 0));
            }
        });
    }
}
