//! The same two kinds of traffic through every strategy, each chosen by its name and settings. It
//! prints what a buffer takes, what is refused, and what memory the pool holds at the end.
//!
//! ```text
//! cargo run --release -p bufworks --example choose
//! cargo run --release -p bufworks --example choose -- ring:capacity=64KiB,buffers=32 shard
//! ```
//!
//! The times are of this machine at this moment; `cargo xtask bench` takes them with care.
#![allow(clippy::std_instead_of_alloc, reason = "a program with an operating system")]
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bufworks::any::{AnyBuilder, AnyPool};
use bufworks::{AcquireError, BufferPool};

/// Two MiB for those that take all of their memory at once.
const CHOICES: [&str; 6] = [
    "heap",
    "slot:capacity=2MiB,slots=256",
    "bounded-slot:capacity=2MiB,slots=256",
    "ring:capacity=2MiB,buffers=256",
    "bump:shard_size=256KiB,max_idle_bytes=2MiB",
    "shard:thread_cache=8,max_bytes=2MiB",
];
const BUFFERS: usize = 200_000;

/// A kind of traffic: how large the next buffer is, and for how many others it is held.
struct Traffic {
    name: &'static str,
    next: fn(&mut fastrand::Rng) -> (usize, usize),
}

const TRAFFIC: [Traffic; 2] = [
    Traffic { name: "packets, gone soon", next: |random| (random.usize(60..1500), 16) },
    Traffic {
        name: "all sizes and ages",
        // Mostly small, seldom large; one in ten stays for long.
        next: |random| {
            let most_doublings = random.u32(1..11);
            let size = 64 << random.u32(0..most_doublings);
            (size, if random.u8(0..10) == 0 { 2000 } else { random.usize(1..64) })
        },
    },
];

/// What came of it.
struct Outcome {
    time: Duration,
    refused: usize,
    reserved_bytes: usize,
}

fn play(pool: &mut AnyPool, traffic: &Traffic) -> Result<Outcome, Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    // The buffers that are out, by when they go: a ring of as many places as the longest is held.
    let mut out: VecDeque<Vec<_>> = (0..2001).map(|_| Vec::new()).collect();
    let mut refused = 0;
    let started = Instant::now();
    for _ in 0..BUFFERS {
        let (size, held) = (traffic.next)(&mut random);
        match pool.acquire(size) {
            Ok(mut buf) => {
                buf.push(1)?;
                out[held].push(black_box(buf));
            }
            // A proxy would stop reading here, until something comes back.
            Err(AcquireError::Exhausted { .. }) => refused += 1,
            Err(error) => return Err(error.into()),
        }
        out[0].clear();
        out.rotate_left(1);
    }
    let time = started.elapsed();
    Ok(Outcome { time, refused, reserved_bytes: pool.stats().reserved_bytes })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut choices: Vec<String> = std::env::args().skip(1).collect();
    if choices.is_empty() {
        choices = CHOICES.map(str::to_owned).into();
    }
    for traffic in &TRAFFIC {
        println!("{}:", traffic.name);
        for choice in &choices {
            let mut pool = choice.parse::<AnyBuilder>()?.build()?;
            play(&mut pool, traffic)?; // for the first touch of its memory, which is not what is compared
            let Outcome { time, refused, reserved_bytes } = play(&mut pool, traffic)?;
            println!(
                "  {choice:40} {:4.0} ns a buffer, {:5.2} % refused, holds {:5} KiB",
                time.as_secs_f64() * 1e9 / BUFFERS as f64,
                refused as f64 * 100.0 / BUFFERS as f64,
                reserved_bytes >> 10
            );
        }
    }
    Ok(())
}
