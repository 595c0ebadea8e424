//! T26: what is kept does not grow while the same traffic continues. To be run in a process of its
//! own.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bufcore::BufferPool;

use crate::process::{resident_bytes, steady_allocator};

const THREADS: usize = 16;
/// Buffers that each thread has at once: at most 64 are alive.
const ALIVE: usize = 4;
/// Part of the time for which memory may still grow, and the longest that this may last.
const WARM_UP: u32 = 3;
const LONGEST_WARM_UP: Duration = Duration::from_secs(10);
/// What the allocator's own arenas, one for each thread, may still add.
const SLACK_BYTES: usize = 3 << 20;

/// Takes and drops buffers of `bytes` bytes on sixteen threads, at most 64 of them alive, for
/// `BUFTEST_STEADY_SECONDS` (3 unless set). After the first third, or ten seconds, resident memory
/// does not grow.
///
/// # Panics
///
/// When it does.
pub fn flat<P: BufferPool + Clone + Send>(pool: &P, bytes: usize) {
    let seconds =
        env::var("BUFTEST_STEADY_SECONDS").map_or(3, |text| text.parse().expect("a number of seconds"));
    steady_allocator();
    let whole = Duration::from_secs(seconds);
    let warm_up = (whole / WARM_UP).min(LONGEST_WARM_UP);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut pool, is_over) = (pool.clone(), &is_over);
            scope.spawn(move || {
                let mut held = [const { None }; ALIVE];
                let mut at = thread;
                // ORDER: Relaxed: a signal that carries nothing.
                while !is_over.load(Ordering::Relaxed) {
                    at = (at + 1) % ALIVE;
                    held[at] = None;
                    held[at] = Some(pool.acquire(bytes).expect("the pool has room"));
                }
            });
        }
        let started = Instant::now();
        thread::sleep(warm_up);
        let early = resident_bytes();
        thread::sleep(whole.saturating_sub(started.elapsed()));
        let late = resident_bytes();
        // ORDER: Relaxed, as above.
        is_over.store(true, Ordering::Relaxed);
        println!("steady: {early} bytes resident after {warm_up:?}, {late} after {whole:?}");
        assert!(
            late <= early + SLACK_BYTES,
            "resident memory grew from {early} to {late} bytes in {whole:?}"
        );
    });
}
