//! T1, T2 and T4: buffers that are filled on one thread, and read, held and dropped on others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, Frozen, Lease, SplitLease, Writer};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::scaled;
use crate::Kit;
use crate::append::Append;
use crate::model::{Claim, Shadow};
use crate::{pattern, thresholds};

const MAX_BYTES: usize = 64 << 10;
const MAX_HELD: usize = 64;
const SEED: u64 = 0x0B0F;
/// One trim in this number of buffers.
const TRIMS_EACH: u16 = 512;

/// What goes to a consumer. The claim stands first, so that it ends before the memory does.
enum Parcel<L: Lease> {
    Whole {
        _claim: Claim,
        buf: Buf<L>,
        seed: u64,
    },
    View {
        _claim: Option<Arc<Claim>>,
        view: Frozen<L>,
        seed: u64,
        position: usize,
        len: usize,
    },
    /// Nothing: let go of everything that is held.
    Flush,
}

impl<L: Lease> Parcel<L> {
    fn check(&self) {
        match self {
            Self::Whole { buf, seed, .. } => pattern::check(buf, *seed, 0),
            Self::View { view, seed, position, len, .. } => {
                assert_eq!(view.len(), *len, "length of a view");
                pattern::check(view, *seed, *position);
            }
            Self::Flush => {}
        }
    }
}

/// Which buffers the traffic consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    Whole,
    Every,
}

/// Sends whole buffers of random size, a quarter of them at a threshold, to one to four threads that hold up to 64 each (T1).
pub fn whole_buffers<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    for consumers in 1..=4 {
        run(kit, Ways::Whole, consumers, kit.scaled(250_000));
    }
}

/// Sends frames grown in place, frames that have to move, frozen, split and cloned buffers (T2).
pub fn every_way<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    for consumers in [1, 3] {
        run(kit, Ways::Every, consumers, kit.scaled(100_000));
    }
}

/// Runs T2 with few buffers, for trials that disturb it.
#[cfg(target_os = "linux")]
pub(super) fn every_way_for_a_moment<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    const FEW: usize = 200;
    run(kit, Ways::Every, 2, FEW);
}

fn run<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>, ways: Ways, consumers: usize, count: usize) {
    let shadow = Shadow::new();
    let mut pool = (kit.make)();
    // A pool that has nothing beside its region is to hold several at once.
    let limit = MAX_BYTES.min(if kit.rejects { pool.max_capacity() / 8 } else { pool.max_capacity() });
    thread::scope(|scope| {
        let (mut queues, threads): (Vec<Producer<Parcel<P::Lease>>>, Vec<_>) = (0..consumers)
            .map(|index| {
                let (producer, consumer) = RingBuffer::new(256);
                (producer, scope.spawn(move || consume(consumer, SEED + index as u64)))
            })
            .unzip();
        let mut rng = fastrand::Rng::with_seed(SEED ^ consumers as u64);
        let (mut made, mut refused) = (0, 0_usize);
        while made < count {
            let seed = rng.u64(..);
            let bytes = if rng.u8(..4) > 0 { rng.usize(..=limit) } else { thresholds::any(rng.usize(..)) };
            let bytes = bytes.min(limit);
            if rng.u16(..TRIMS_EACH) == 0 {
                (kit.trim)(&mut pool, rng.bool().then_some(Duration::ZERO));
            }
            let buf = match make(&mut pool, ways, bytes, seed, &shadow, &mut rng) {
                Ok(buf) => buf,
                Err(error) => {
                    assert!(kit.rejects, "{bytes} bytes refused: {error}");
                    refused += 1;
                    assert!(refused < 1000 + count * 200, "{refused} refusals for {made} buffers");
                    queues.iter_mut().for_each(|queue| push(queue, Parcel::Flush));
                    thread::yield_now();
                    continue;
                }
            };
            made += 1;
            assert_eq!(buf.len(), bytes, "length of the buffer");
            let claim = shadow.claim(buf.as_ptr(), buf.capacity());
            send(buf, claim, seed, ways, &mut queues, &mut rng);
        }
        drop(queues);
        // Joined, because ThreadSanitizer does not see how a scope ends.
        threads.into_iter().for_each(|thread| thread.join().expect("the consumer saw what it should"));
    });
    assert_eq!(shadow.live(), 0, "buffers that never came back");
}

/// Makes one filled buffer.
fn make<P: BufferPool<Lease: SplitLease>>(
    pool: &mut P,
    ways: Ways,
    bytes: usize,
    seed: u64,
    shadow: &Arc<Shadow>,
    rng: &mut fastrand::Rng,
) -> Result<Buf<P::Lease>, AcquireError> {
    let framed = ways == Ways::Every && rng.bool();
    if !framed {
        let mut buf = pool.acquire(bytes)?;
        assert!(buf.is_empty() && buf.capacity() >= bytes, "{} of {bytes} bytes", buf.capacity());
        pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
        buf.commit(bytes);
        return Ok(buf);
    }
    // Up to four steps; between two of them, buffers are acquired that are then in the frame's way.
    let mut writer = Writer::new(pool);
    let mut in_the_way = Vec::new();
    let mut filled = 0;
    let steps = rng.usize(1..=4);
    for step in 1..=steps {
        let target = if step == steps { bytes } else { rng.usize(filled..=bytes) };
        match writer.append(target - filled) {
            Ok(room) => pattern::fill(room, seed, filled),
            Err(error) => {
                // What is there already must still be.
                pattern::check(writer.filled(), seed, 0);
                let given_up = writer.finish();
                assert_eq!(given_up.len(), filled);
                pattern::check(&given_up, seed, 0);
                return Err(error);
            }
        }
        filled = target;
        for _ in 0..rng.usize(..3) {
            let small = rng.usize(1..512);
            if let Ok(mut buf) = writer.get_mut().acquire(small) {
                let seed = rng.u64(..);
                pattern::fill(&mut buf.spare_mut()[..small], seed, 0);
                buf.commit(small);
                let claim = shadow.claim(buf.as_ptr(), buf.capacity());
                in_the_way.push((claim, buf, seed));
            }
        }
        if rng.bool() {
            in_the_way.truncate(rng.usize(..=in_the_way.len()));
        }
    }
    let buf = writer.finish();
    for (_claim, buf, seed) in &in_the_way {
        pattern::check(buf, *seed, 0);
    }
    Ok(buf)
}

/// Hands one buffer over: whole, or frozen, split or cloned, to one or several consumers.
fn send<L: Lease>(
    buf: Buf<L>,
    claim: Claim,
    seed: u64,
    ways: Ways,
    queues: &mut [Producer<Parcel<L>>],
    rng: &mut fastrand::Rng,
) {
    let consumers = queues.len();
    let mut to = |parcel, rng: &mut fastrand::Rng| push(&mut queues[rng.usize(..consumers)], parcel);
    let way = if ways == Ways::Whole { 0 } else { rng.u8(..4) };
    if way == 0 {
        return to(Parcel::Whole { _claim: claim, buf, seed }, rng);
    }
    // Not shared when it is switched off: its count would order what the views have to.
    let claim = (!claim.is_empty()).then(|| Arc::new(claim));
    let view = buf.freeze();
    let parcel = |view: Frozen<L>, position: usize, len: usize| Parcel::View {
        // Without bytes it holds nothing.
        _claim: claim.clone().filter(|_| len > 0),
        view,
        seed,
        position,
        len,
    };
    let len = view.len();
    match way {
        1 => to(parcel(view, 0, len), rng),
        2 => {
            let mut rest = view;
            let at = rng.usize(..=len);
            let front = rest.split_to(at);
            let cut = rng.usize(..=rest.len());
            let back = rest.split_off(cut);
            to(parcel(front, 0, at), rng);
            to(parcel(back, at + cut, len - at - cut), rng);
            to(parcel(rest, at, cut), rng);
        }
        _ => {
            for _ in 0..rng.usize(1..4) {
                to(parcel(view.clone(), 0, len), rng);
            }
            to(parcel(view, 0, len), rng);
        }
    }
}

fn push<T>(queue: &mut Producer<T>, mut item: T) {
    while let Err(PushError::Full(back)) = queue.push(item) {
        assert!(!queue.is_abandoned(), "a consumer failed");
        item = back;
        thread::yield_now();
    }
}

fn consume<L: Lease>(mut queue: Consumer<Parcel<L>>, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut held: VecDeque<Parcel<L>> = VecDeque::new();
    loop {
        // In this order: what was pushed before the producer went is still popped.
        let ended = queue.is_abandoned();
        let Ok(parcel) = queue.pop() else {
            if ended {
                break;
            }
            thread::yield_now();
            continue;
        };
        parcel.check();
        let most = if matches!(parcel, Parcel::Flush) { 0 } else { rng.usize(..=MAX_HELD) };
        held.push_back(parcel);
        while held.len() > most {
            let parcel = held.swap_remove_back(rng.usize(..held.len())).expect("an index below the length");
            parcel.check();
        }
        if rng.u8(..) == 0 {
            thread::yield_now();
        }
    }
    held.iter().for_each(Parcel::check);
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
            let Ok(mut buf) = pool.acquire(BYTES) else {
                assert!(kit.rejects, "{BYTES} bytes refused");
                thread::yield_now();
                continue;
            };
            reused += usize::from(!seen.insert(buf.as_ptr().addr()));
            pattern::fill(&mut buf.spare_mut()[..BYTES], sent as u64, 0);
            buf.commit(BYTES);
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
