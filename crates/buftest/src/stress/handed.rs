//! Buffers that go from the thread that acquires them to one that drops them, of pools that are
//! mostly empty: nearly every request waits for a release. Some requests do not wait, so that their
//! releases are plain ones.

use std::sync::mpsc;
use std::thread;

use bufcore::{AcquireError, Buf, BufferPool};

use super::Round;

/// Runs one round: half of the threads acquire, each from a pool or a handle that `make` makes, and
/// `wait` when that is refused.
///
/// # Panics
///
/// When `wait` gives up: all that was acquired comes back, so a wake-up was lost.
pub fn handed<P: BufferPool>(
    round: &Round,
    bytes: usize,
    make: impl Fn() -> P + Sync,
    wait: impl Fn(&mut P, &mut fastrand::Rng) -> Result<Buf<P::Lease>, AcquireError> + Sync,
) {
    thread::scope(|scope| {
        let pairs = 0..(round.threads() / 2) as u64;
        let threads = pairs.flat_map(|pair| {
            let (sender, receiver) = mpsc::channel::<Buf<P::Lease>>();
            let (make, wait) = (&make, &wait);
            let acquires = scope.spawn(move || {
                let (mut pool, mut rng) = (make(), round.rng(pair));
                while !round.is_over() {
                    let buf = pool.acquire(bytes).or_else(|_| wait(&mut pool, &mut rng));
                    let sent = sender.send(buf.expect("nobody woke a request that waits"));
                    sent.expect("the other thread drops until this one ends");
                    round.step();
                }
            });
            [acquires, scope.spawn(move || receiver.into_iter().for_each(drop))]
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the process ends with a panic"));
    });
}
