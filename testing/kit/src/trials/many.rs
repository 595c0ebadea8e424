//! What a request costs as the surroundings grow (T26).

use std::hint::black_box;
use std::time::Duration;

use bufcore::BufferPool;

use crate::process::ThreadTimer;

/// How often each number of pools is measured: the best counts, so that what others do to the
/// processor's caches does not.
const ROUNDS: usize = 12;

/// Acquires and drops a buffer of each of the pools in turn; the shortest time of one, in the best
/// of some rounds over all.
fn in_turn<P: BufferPool>(pools: &mut [P]) -> Duration {
    let requests = 8192_usize.next_multiple_of(pools.len());
    let round = || {
        let timer = ThreadTimer::start();
        for _ in 0..requests / pools.len() {
            for pool in &mut *pools {
                drop(black_box(pool.acquire(black_box(64)).expect("a small request")));
            }
        }
        timer.elapsed()
    };
    let best = std::iter::repeat_with(round).take(ROUNDS).min().expect("some rounds");
    best / requests as u32
}

/// Checks that a thread that uses 4096 pools in turn pays little more for each request than one
/// that uses 64, which are more than it finds at once.
///
/// `most` is how many times as much: the mark is 3, of which tests leave a margin to. On a loaded
/// machine the pools are not in its caches, so it is tried again. A list in the place of the tree
/// costs twenty times as much.
pub fn pools_in_turn<P: BufferPool + Send>(make: fn() -> P, most: u32) {
    let mut pools: Vec<P> = (0..4096).map(|_| make()).collect();
    // A thread of its own, which knows no other pools.
    let elsewhere = |pools: &mut [P]| {
        std::thread::scope(|scope| scope.spawn(|| in_turn(pools)).join().expect("requests are served"))
    };
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for at in [0, 1000, 3000].repeat(4) {
        few = few.min(elsewhere(&mut pools[at..at + 64]));
        many = many.min(elsewhere(&mut pools));
        if many <= few * most {
            break;
        }
    }
    println!("{few:?} with 64 pools in turn, {many:?} with 4096");
    assert!(many <= few * most, "{few:?} with 64 pools in turn, {many:?} with 4096");
}
