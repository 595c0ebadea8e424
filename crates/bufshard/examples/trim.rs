//! Resident memory before, during and after two bursts over eight threads, four of which do nothing
//! afterwards, and after `trim`. The pool keeps little of the first burst, and more of what comes
//! again.
//!
//! ```text
//! cargo run --release -p bufshard --features mmap --example trim
//! ```
//!
//! Linux; elsewhere the numbers are the pool's own. Without the feature `mmap` the allocator gets what
//! the pool does not keep, and may keep it.

use std::fs;
use std::sync::Barrier;
use std::thread;

use bufshard::ShardPool;
use bufshard::bufcore::Error;

const THREADS: usize = 8;
const MIB: usize = 1 << 20;

/// Resident memory of this process, in MiB.
fn resident(pool: &ShardPool) -> usize {
    const PAGE_BYTES: usize = 4096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<usize> = statm.split(' ').nth(1).and_then(|field| field.parse().ok());
    pages.map_or(pool.stats().reserved_bytes, |pages| pages * PAGE_BYTES) / MIB
}

fn main() -> Result<(), Error> {
    // Larger caches than usual, so that much is left to give back.
    let pool = ShardPool::builder().max_cached_bytes(256 << 20).build()?;
    println!("before:                 {:5} MiB resident", resident(&pool));
    let barrier = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (pool, barrier) = (&pool, &barrier);
            scope.spawn(move || -> Result<(), Error> {
                for _ in 0..2 {
                    burst(pool, barrier)?;
                }
                // Half of the threads go on with small requests, half do nothing at all.
                if index % 2 == 0 {
                    for _ in 0..100_000 {
                        drop(pool.acquire(1500)?);
                    }
                }
                barrier.wait();
                barrier.wait();
                Ok(())
            });
        }
        for which in ["first", "second"] {
            barrier.wait();
            println!("in the {which:6} burst:    {:5} MiB", resident(&pool));
            barrier.wait();
            barrier.wait();
            println!("after the {which:6} burst: {:5} MiB", resident(&pool));
            barrier.wait();
        }
        barrier.wait();
        pool.trim();
        println!(
            "after `trim`:           {:5} MiB, {} bytes in the pool",
            resident(&pool),
            pool.stats().reserved_bytes
        );
        barrier.wait();
    });
    Ok(())
}

/// Holds many buffers at once, and releases them all.
fn burst(pool: &ShardPool, barrier: &Barrier) -> Result<(), Error> {
    let held: Result<Vec<_>, Error> = (0..128).map(|_| Ok(pool.acquire_zeroed(MIB)?)).collect();
    let mut held = held?;
    // Fresh memory is not there before it is written.
    held.iter_mut().for_each(|buf| buf.fill(1));
    barrier.wait();
    barrier.wait();
    drop(held);
    barrier.wait();
    barrier.wait();
    Ok(())
}
