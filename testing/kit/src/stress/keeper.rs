//! A keeper beside traffic with phases: bursts, and pauses in which what the burst took goes.

use std::thread;
use std::time::Instant;

use bufcore::{BufferPool, SplitLease};
use bufkeeper::{KeeperThread, Trim, Watch};
use fastrand::Rng;

use super::patience;
use super::pools::Subject;
use crate::pattern;
use crate::trials::keeper::{AGE, keeper};

/// The most buffers of a burst, and the most bytes of each.
const BURST: usize = 40;
const BYTES: usize = 200_000;

/// A pool that threads share, and the thread that keeps it.
pub struct Kept<P> {
    /// The pool.
    pub pool: P,
    /// Ends with the round.
    _keeper: KeeperThread,
}

impl<P: Watch> Kept<P> {
    /// Makes a keeper that watches the pool.
    pub fn new(pool: P) -> Self {
        let keeper = keeper().watch(&pool).spawn().expect("a thread starts");
        Self { pool, _keeper: keeper }
    }
}

impl<P: BufferPool<Lease: SplitLease> + Clone + Trim> Subject<P, Kept<P>> {
    /// Makes the subject of a pool whose handles threads share, and that a keeper watches, in
    /// phases.
    pub fn kept(shared: fn(&mut Rng) -> Kept<P>) -> Self {
        Self {
            shared,
            pool: |kept| kept.pool.clone(),
            own: |pool, rng, _| phase(pool, rng),
            at_rest: |pool| freed(pool),
        }
    }
}

/// Runs one phase of a thread: a burst of large buffers, all out at once, or a pause of up to some
/// ages.
///
/// # Panics
///
/// When a buffer of the burst does not hold what was written into it.
fn phase<P: BufferPool<Lease: SplitLease>>(pool: &mut P, rng: &mut Rng) {
    if rng.bool() {
        return thread::sleep(AGE.mul_f64(3.0 * rng.f64()));
    }
    let (count, bytes, seed) = (rng.usize(1..BURST), rng.usize(1..BYTES), rng.u64(..));
    let burst: Vec<_> = (0..count as u64)
        .filter_map(|at| {
            let mut buf = pool.acquire(bytes).ok()?;
            pattern::fill(&mut buf.spare_mut()[..bytes], seed ^ at, 0);
            buf.commit(bytes);
            Some((at, buf))
        })
        .collect();
    if rng.u8(..4) == 0 {
        thread::sleep(AGE);
    }
    for (at, buf) in burst {
        pattern::check(&buf, seed ^ at, 0);
    }
}

/// Waits until the keeper has freed all memory of a pool of which nothing is out, without a call
/// from anybody.
///
/// # Panics
///
/// When it does not in a long time.
fn freed(pool: &impl Trim) {
    let started = Instant::now();
    while let Some(left) = pool.stats().map(|stats| stats.reserved_bytes).filter(|&bytes| bytes > 0) {
        assert!(started.elapsed() < patience(), "the keeper leaves {left} bytes");
        thread::sleep(AGE / 5);
    }
}
