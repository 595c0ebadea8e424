//! T1, T2 and T4: buffers that are filled on one thread, and read, held and dropped on others.

use std::thread;
use std::time::Duration;

use bufcore::{Buf, BufferPool, SplitLease};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::{filled, scaled};
use crate::Kit;
use crate::model::Shadow;
use crate::parcel::Parcel;
use crate::{pattern, thresholds};

const MAX_BYTES: usize = 64 << 10;
const MAX_HELD: usize = 64;
const SEED: u64 = 0x0B0F;
/// One trim in this number of buffers.
const TRIMS_EACH: u16 = 512;

/// What goes to a consumer. `None` lets go of everything that is held.
type Sent<L> = Option<Parcel<L>>;

/// Sends buffers of random size, a quarter of them at a threshold, to one to four threads that hold
/// up to 64 each: whole ones, frames grown in place and frames that have to move, frozen, split and
/// cloned ones (T1, T2).
pub fn buffers<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    for consumers in 1..=4 {
        run(kit, consumers, kit.scaled(250_000));
    }
}

/// Runs the traffic with few buffers, for trials that disturb it.
#[cfg(target_os = "linux")]
pub(super) fn for_a_moment<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    const FEW: usize = 200;
    run(kit, 2, FEW);
}

fn run<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>, consumers: usize, count: usize) {
    let shadow = Shadow::new();
    let mut pool = (kit.make)();
    // A pool that has nothing beside its region is to hold several at once.
    let limit = MAX_BYTES.min(if kit.rejects { pool.max_capacity() / 8 } else { pool.max_capacity() });
    thread::scope(|scope| {
        let (mut queues, threads): (Vec<Producer<Sent<P::Lease>>>, Vec<_>) = (0..consumers)
            .map(|index| {
                let (producer, consumer) = RingBuffer::new(256);
                (producer, scope.spawn(move || consume(consumer, SEED + index as u64)))
            })
            .unzip();
        let mut rng = fastrand::Rng::with_seed(SEED ^ consumers as u64);
        let (mut made, mut refused) = (0, 0_usize);
        while made < count {
            let bytes = if rng.u8(..4) > 0 { rng.usize(..=limit) } else { thresholds::any(rng.usize(..)) };
            let bytes = bytes.min(limit);
            if rng.u16(..TRIMS_EACH) == 0 {
                (kit.trim)(&mut pool, rng.bool().then_some(Duration::ZERO));
            }
            let make = if rng.bool() { Parcel::acquired } else { Parcel::framed };
            match make(&mut pool, bytes, Some(&shadow), &mut rng) {
                Ok(mut parcel) => {
                    made += 1;
                    for _ in 0..rng.usize(..4) {
                        if let Some(besides) = parcel.change(&mut rng) {
                            push(&mut queues[rng.usize(..consumers)], Some(besides));
                        }
                    }
                    push(&mut queues[rng.usize(..consumers)], Some(parcel));
                }
                Err(error) => {
                    assert!(kit.rejects, "{bytes} bytes refused: {error}");
                    refused += 1;
                    assert!(refused < 1000 + count * 200, "{refused} refusals for {made} buffers");
                    queues.iter_mut().for_each(|queue| push(queue, None));
                    thread::yield_now();
                }
            }
        }
        drop(queues);
        // Joined, because ThreadSanitizer does not see how a scope ends.
        threads.into_iter().for_each(|thread| thread.join().expect("the consumer saw what it should"));
    });
    assert_eq!(shadow.live(), 0, "buffers that never came back");
}

fn push<T>(queue: &mut Producer<T>, mut item: T) {
    while let Err(PushError::Full(back)) = queue.push(item) {
        assert!(!queue.is_abandoned(), "a consumer failed");
        item = back;
        thread::yield_now();
    }
}

fn consume<L: SplitLease>(mut queue: Consumer<Sent<L>>, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held = Vec::new();
    loop {
        // In this order: what was pushed before the producer went is still popped.
        let ended = queue.is_abandoned();
        let Ok(sent) = queue.pop() else {
            if ended {
                break;
            }
            thread::yield_now();
            continue;
        };
        sent.iter().for_each(Parcel::check);
        let most = if sent.is_none() { 0 } else { rng.usize(..=MAX_HELD) };
        held.extend(sent);
        while held.len() > most {
            drop(held.swap_remove(rng.usize(..held.len())));
        }
        if rng.u8(..) == 0 {
            thread::yield_now();
        }
    }
}

/// Hands buffers over: A fills, B reads, scribbles and drops, A uses the memory again (T4). The
/// queue is longer than the traffic and A never looks back at it, so that only the pool orders what
/// B did before what A does next.
pub fn handover<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    const BYTES: usize = 256;
    let count = scaled(200_000);
    // A pool that uses memory in large pieces gets further, if it has to, to use any of it twice.
    let most = count.max(100_000);
    let mut pool = (kit.make)();
    let pools = pool.stats().reserved_bytes > 0;
    let mut reused = 0_usize;
    let mut seen = std::collections::HashSet::new();
    let (mut producer, mut consumer) = RingBuffer::<Buf<P::Lease>>::new(most);
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            let mut got = 0_u64;
            loop {
                // In this order: what was pushed before the producer went is still popped.
                let ended = consumer.is_abandoned();
                let Ok(mut buf) = consumer.pop() else {
                    if ended {
                        break;
                    }
                    thread::yield_now();
                    continue;
                };
                pattern::check(&buf, got, 0);
                pattern::fill(&mut buf, !got, 0);
                got += 1;
            }
        });
        let mut sent = 0;
        while sent < count || (reused == 0 && pools && sent < most) {
            let Ok(buf) = filled(&mut pool, BYTES, sent as u64) else {
                assert!(kit.rejects, "{BYTES} bytes refused");
                thread::yield_now();
                continue;
            };
            reused += usize::from(!seen.insert(buf.as_ptr().addr()));
            producer.push(buf).expect("the queue is longer than the traffic");
            sent += 1;
            if sent % 16 == 0 {
                // Lets B catch up without telling A anything.
                thread::yield_now();
            }
        }
        drop(producer);
        other.join().expect("the other side saw what it should");
    });
    // A pool without memory of its own leaves it to the allocator, which need not use any twice:
    // AddressSanitizer's does not.
    assert!(reused > 0 || !pools, "no memory was used twice: the trial showed nothing");
}
