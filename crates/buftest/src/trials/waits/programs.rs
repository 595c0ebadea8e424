//! T24: random programs of buffers, and of requests that wait for them.

use std::mem;
use std::task::Poll;

use bufcore::Buf;

use super::Waits;
use crate::tasks::{counting, poll};
use crate::trials::scaled;

/// Runs random programs of buffers and of a request that waits among their releases:
/// polled late, without a wake, by other executors, given up, forgotten. When all buffers have come
/// back, it was woken, and is served.
pub fn t24_programs<P: Waits>(make: impl Fn() -> P) {
    for seed in 0..scaled(10_000).max(200) as u64 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut pool = make();
        let mut held = Vec::new();
        for _ in 0..rng.usize(5..60) {
            let bytes = rng.usize(1..95_000);
            match rng.u8(..4) {
                0 => held.extend(pool.acquire(bytes).ok()),
                1 if !held.is_empty() => drop(held.swap_remove(rng.usize(..held.len()))),
                _ => {
                    let served = waits_among_releases(&mut pool, bytes, &mut held, &mut rng);
                    held.extend(served.unwrap_or_else(|| panic!("of seed {seed} sleeps for ever")));
                }
            }
        }
    }
}

/// Runs one request of a program. Returns `None` when it sleeps though nothing is out; otherwise
/// its buffer, if it was not given up.
fn waits_among_releases<P: Waits>(
    pool: &mut P,
    bytes: usize,
    held: &mut Vec<Buf<P::Lease>>,
    rng: &mut fastrand::Rng,
) -> Option<Option<Buf<P::Lease>>> {
    let (mut wakes, mut waker) = counting();
    let mut request = pool.acquire_async(bytes);
    let mut seen = wakes.count();
    let mut polled = poll(request.as_mut(), &waker);
    while polled.is_pending() {
        match rng.u8(..16) {
            0 => return Some(None),
            1 => {
                mem::forget(request);
                return Some(None);
            }
            2 => {
                (wakes, waker) = counting();
                seen = 0;
                polled = poll(request.as_mut(), &waker);
            }
            3 => polled = poll(request.as_mut(), &waker),
            _ => {
                let is_last = held.is_empty();
                if !is_last {
                    drop(held.swap_remove(rng.usize(..held.len())));
                }
                if wakes.count() > seen {
                    seen = wakes.count();
                    polled = poll(request.as_mut(), &waker);
                } else if is_last {
                    return None;
                }
            }
        }
    }
    let Poll::Ready(served) = polled else { return None };
    Some(Some(served.expect("it waits until there is room")))
}
