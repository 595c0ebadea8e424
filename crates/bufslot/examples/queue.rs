//! A queue of buffers of random sizes, with two slots and a quarter of the bytes more than are out.
//!
//! ```text
//! cargo run --release -p bufslot --example queue
//! ```
//!
//! prints how many of the requests went to the heap, which is none, and what one took.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program with an operating system"
)]

use std::collections::VecDeque;
use std::time::Instant;

use bufslot::{Error, SlotPool};

/// Requests for each line.
const REQUESTS: usize = 200_000;

/// `REQUESTS` sizes of 1 to 1000 bytes, by a generator of Lehmer's.
fn sizes(seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut draw = || {
        state = state * 48_271 % 0x7fff_ffff;
        1 + (state % 1000) as usize
    };
    (0..REQUESTS).map(|_| draw()).collect()
}

fn main() -> Result<(), Error> {
    for out in [64, 1024] {
        for seed in 1..=4 {
            let sizes = sizes(seed);
            let windows = sizes.windows(out).map(|window| window.iter().sum::<usize>());
            let bytes = windows.max().unwrap_or(0);

            let mut pool = SlotPool::new(bytes + bytes / 4, out + 2)?;
            let mut queue = VecDeque::with_capacity(out);
            let mut on_the_heap = 0;
            let start = Instant::now();
            for &size in &sizes {
                if queue.len() == out {
                    queue.pop_front(); // the oldest goes before the newest comes
                }
                let buf = pool.acquire(size)?;
                on_the_heap += usize::from(buf.lease().is_fallback());
                queue.push_back(buf);
            }
            let each = start.elapsed() / REQUESTS as u32;
            println!(
                "{out:>4} buffers out, {:>3} KiB: {on_the_heap} of {REQUESTS} on the heap, {each:?} each",
                pool.capacity() >> 10
            );
            assert_eq!(on_the_heap, 0);
        }
    }
    Ok(())
}
