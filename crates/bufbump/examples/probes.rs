//! What `max_probes` does: a hundred tasks hold buffers of random sizes for random times. A probe
//! finds room that is left in an older shard, and saves a new one; but the older one then comes
//! back later.
//!
//! ```text
//! cargo run --release -p bufbump --example probes
//! ```

use std::time::Instant;

use bufbump::BumpPool;
use bufbump::bufcore::Error;

const TASKS: usize = 100;
const BUFFERS: usize = 1000;
const SHARD_BYTES: usize = 16 << 10;

/// About a normal distribution around `mean`: the sum of four equal ones.
fn size(random: &mut fastrand::Rng, mean: usize) -> usize {
    (0..4).map(|_| random.usize(0..=mean / 2)).sum::<usize>().max(1)
}

fn main() -> Result<(), Error> {
    println!("| sizes around | probes | time per buffer | memory at the peak | of it used |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    for mean in [10, 2048] {
        for probes in [0, 1, 2, 4, 8] {
            let pool = BumpPool::builder().shard_size(SHARD_BYTES).max_probes(probes).build()?;
            let mut random = fastrand::Rng::with_seed(7);
            // In each slot one buffer of one task, with the step at which it goes.
            let mut held: Vec<Vec<_>> = (0..TASKS).map(|_| Vec::new()).collect();
            let (mut peak, mut used) = (0, 0);
            let started = Instant::now();
            for step in 0..BUFFERS {
                for task in &mut held {
                    task.retain(|(ends, _)| *ends > step);
                    let buf = pool.acquire(size(&mut random, mean))?;
                    task.push((step + 1 + random.usize(0..8), buf));
                }
                if step % 100 == 99 {
                    let reserved = pool.stats().reserved_bytes;
                    if reserved > peak {
                        peak = reserved;
                        used = held.iter().flatten().map(|(_, buf)| buf.capacity()).sum();
                    }
                }
            }
            let nanos = started.elapsed().as_nanos() as f64 / (TASKS * BUFFERS) as f64;
            let percent = 100 * used / peak;
            println!("| {mean} B | {probes} | {nanos:.0} ns | {} KiB | {percent} % |", peak >> 10);
        }
    }
    Ok(())
}
