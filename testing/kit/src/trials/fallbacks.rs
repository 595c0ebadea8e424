//! T9 and T21 to T23 for pools over a fallback of the user's: generated programs, in which it lies,
//! panics, and comes back in.

use bufcore::{Buf, BufferPool, SplitLease, Writer};

use super::scaled;
use crate::bytes::Bytes;
use crate::hostile::{Script, Scripted, check_numbers, guarded};
use crate::lockstep::Lockstep;
use crate::ops::Op;

/// Steps of a program.
const STEPS: usize = 120;

/// Counts the buffers of 100 bytes that the pool has before it goes to its fallback.
fn room<P: BufferPool>(pool: &mut P, is_fallback: fn(&Buf<P::Lease>) -> bool) -> usize {
    let mut held = Vec::new();
    loop {
        let buf = pool.acquire(100).expect("the fallback is kind");
        if is_fallback(&buf) {
            return held.len();
        }
        held.push(buf);
        assert!(held.len() < 1 << 14, "more buffers than the region has bytes");
    }
}

/// Runs programs whose fallback lies, panics, lets go of buffers and views of the pool that it serves,
/// and ends another pool that has a buffer out and a frame open, in any of its calls. Each request is
/// served as promised, or refused in its own numbers, and all else is as before: bytes that are out,
/// the open frame, and in the end the room of the region (T21, T23).
pub fn t21_hostile<P: BufferPool<Lease: SplitLease> + Send + 'static>(
    over: impl Fn(Scripted) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
) {
    for seed in 0..scaled(20_000).max(100) as u64 {
        program(&over, is_fallback, seed, |script, lockstep, bytes| match bytes.byte() {
            0..40 => script.plan(bytes),
            40..60 => {
                if let Some(thing) = lockstep.take(bytes.below(256)) {
                    script.baggage.put(move || thing.end());
                }
            }
            60..64 => {
                let mut other = over(Script::default().fallback(|_| ()));
                let out = other.acquire(100).expect("the region has room");
                let mut other = Writer::new(other);
                other.extend_from_slice(&[9; 70]).expect("the region has room");
                script.baggage.put(move || drop((other, out)));
            }
            _ => lockstep.step(Op::decode(bytes)),
        });
    }
}

/// Runs programs whose fallback panics at its n-th call, of whatever kind, for every n (T9, T22).
pub fn t22_panics<P: BufferPool<Lease: SplitLease> + Send + 'static>(
    over: impl Fn(Scripted) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
) {
    for seed in 0..4 {
        let has_panicked = |honest| {
            let mut is_planned = false;
            program(&over, is_fallback, seed, |script, lockstep, bytes| {
                if !is_planned {
                    is_planned = true;
                    script.plan_panic(honest);
                }
                lockstep.step(Op::decode(bytes));
            })
        };
        let calls = (0..).find(|&honest| !has_panicked(honest)).expect("a program ends");
        assert!(calls > 5, "the fallback was called {calls} times");
    }
}

/// Runs one program, and returns whether all happened that was planned.
fn program<P: BufferPool<Lease: SplitLease> + Send + 'static>(
    over: impl Fn(Scripted) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
    seed: u64,
    mut step: impl FnMut(&Script, &mut Lockstep<P>, &mut Bytes<'_>),
) -> bool {
    let full = room(&mut over(Script::default().fallback(|_| ())), is_fallback);
    let mut data = [0; 12 * STEPS];
    fastrand::Rng::with_seed(seed).fill(&mut data);
    let script = Script::default();
    let mut third = over(Script::default().fallback(|_| ()));
    let fallback = script.fallback(move |_| drop(third.acquire(1 << 14).expect("the heap serves")));
    let mut lockstep = Lockstep::over(over(fallback), true);
    lockstep.set_refusal(check_numbers);
    for data in data.chunks(12) {
        guarded(|| {
            step(&script, &mut lockstep, &mut Bytes::new(data));
            let stats = lockstep.pool().stats();
            assert!(stats.acquired < 10_000, "{stats:?}: what a pool has done itself it counts itself");
        });
        lockstep.compare();
    }
    let is_done = script.is_done();
    script.end();
    lockstep.finish_frame();
    lockstep.drop_all();
    assert_eq!(lockstep.pool().stats().in_use, 0, "all was released");
    assert_eq!(room(lockstep.pool(), is_fallback), full, "room was lost");
    lockstep.finish(seed.is_multiple_of(2));
    is_done
}
