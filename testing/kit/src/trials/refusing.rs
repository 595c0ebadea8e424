//! T27: a pool that refuses is honest about it, and a pool that was set up for n buffers serves n.

use std::collections::VecDeque;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, Lease, SplitLease, Writer};
use fastrand::Rng;

use crate::append::Append;
use crate::{Kit, thresholds};

/// How the held buffers of a program are released.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
    Random,
    EverySecond,
}

impl Order {
    pub(super) const ALL: [Self; 4] = [Self::OldestFirst, Self::NewestFirst, Self::Random, Self::EverySecond];

    /// Releases `count` of the held buffers, or all of them when there are fewer.
    pub(super) fn release<L: Lease>(self, held: &mut VecDeque<Buf<L>>, count: usize, random: &mut Rng) {
        let mut place = random.usize(..2);
        for _ in 0..count.min(held.len()) {
            let released = match self {
                Self::OldestFirst => held.pop_front(),
                Self::NewestFirst => held.pop_back(),
                Self::Random => held.remove(random.usize(..held.len())),
                Self::EverySecond => {
                    place = (place + 1) % held.len();
                    held.remove(place)
                }
            };
            assert!(released.is_some(), "the program releases what it holds");
        }
    }
}

/// Checks the numbers of a refusal, and returns what is available. The refusal can succeed later,
/// and has the number that was asked for.
#[track_caller]
fn available(error: AcquireError, asked: usize) -> usize {
    let AcquireError::Exhausted { requested, available } = error else {
        panic!("{error}: the pool has served {asked} bytes and more before")
    };
    assert_eq!(requested, asked, "{error}");
    assert!(available < requested, "{error}: that is enough for the request");
    available
}

/// Checks the refusal of a request for `asked` bytes with `error`. It is refused again, a request
/// for what is said to be available is served, and one for a byte more is not. Nothing is released
/// meanwhile except what this check takes itself.
#[track_caller]
fn check_refusal<P: BufferPool>(pool: &mut P, asked: usize, error: AcquireError, context: &str) {
    let available = available(error, asked);
    assert_eq!(pool.acquire(asked).map(drop), Err(error), "asked again, {context}");
    if available + 1 < asked {
        let more = pool.acquire(available + 1).map(drop);
        assert!(more.is_err(), "{error}, but {} bytes were served, {context}", available + 1);
    }
    if available > 0 {
        let buf = match pool.acquire(available) {
            Ok(buf) => buf,
            Err(second) => panic!("{error}, and then {second}, {context}"),
        };
        assert!(buf.capacity() >= available, "{} of {available} bytes, {context}", buf.capacity());
        assert!(pool.acquire(asked).is_err(), "{error}, but served beside another buffer, {context}");
    }
    let again = pool.acquire(asked).map(drop);
    assert!(again.is_err(), "{error}, but served later, {context}");
}

/// Checks the refusal of the open frame, which could not grow by `asked` bytes. It grows by what is
/// available.
#[track_caller]
fn check_frame_refusal<P: BufferPool<Lease: SplitLease>>(
    frame: &mut Writer<P>,
    asked: usize,
    error: AcquireError,
    context: &str,
) {
    let (available, len) = (available(error, asked), frame.filled().len());
    assert_eq!(frame.append(asked).map(|room| room.len()), Err(error), "asked again, {context}");
    if available + 1 < asked {
        let more = frame.append(available + 1).map(|room| room.len());
        assert!(more.is_err(), "{error}, but a frame of {len} grew by {}, {context}", available + 1);
    }
    assert_eq!(frame.filled().len(), len, "refused, but grown, {context}");
    match frame.append(available) {
        Ok(room) => assert_eq!(room.len(), available, "{context}"),
        Err(second) => panic!("{error}, and then {second}, for a frame of {len}, {context}"),
    }
}

/// Runs programs of requests, releases and frames of random sizes, in which each refusal is checked
/// (T27 for refusals). The same request is refused again while nothing was released, and
/// `available` is what the next request gets, neither more nor less.
///
/// For pools that refuse; others are not looked at.
pub fn t27_refusals<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    if !kit.rejects {
        return;
    }
    let mut refusals = 0;
    for seed in 0..kit.scaled(3200) as u64 / 4 {
        let mut random = Rng::with_seed(seed);
        let mut writer = Writer::new((kit.make)());
        // From few buffers that are large to many that are small.
        let part = [1, 2, 3, 8, 50, 400][random.usize(..6)];
        let largest = (writer.get_ref().max_capacity() / part).max(1);
        let smallest = if random.bool() { 1 } else { largest.div_ceil(2) };
        let order = Order::ALL[random.usize(..Order::ALL.len())];
        let mut held = VecDeque::new();
        for step in 0..200 {
            let context = format!("in step {step} of the program {seed}, {order:?}");
            let bytes = match random.u8(..4) {
                0 => thresholds::any(random.usize(..)).clamp(smallest, largest),
                _ => random.usize(smallest..=largest),
            };
            if random.u8(..16) == 0 {
                (kit.trim)(writer.get_mut(), random.bool().then_some(Duration::ZERO));
            }
            let refused = if random.usize(..4) > 0 {
                match writer.get_mut().acquire(bytes) {
                    Ok(buf) => {
                        assert!(buf.capacity() >= bytes, "{} of {bytes} bytes, {context}", buf.capacity());
                        held.push_back(buf);
                        false
                    }
                    Err(error) => {
                        check_refusal(writer.get_mut(), bytes, error, &context);
                        true
                    }
                }
            } else {
                let refused = match writer.append(bytes) {
                    Ok(room) => {
                        assert_eq!(room.len(), bytes, "{context}");
                        false
                    }
                    // What is there already counts: such a frame may never fit.
                    Err(AcquireError::TooLarge { limit, .. }) => {
                        assert!(limit < bytes, "{limit} is enough for {bytes} bytes, {context}");
                        false
                    }
                    Err(error) => {
                        check_frame_refusal(&mut writer, bytes, error, &context);
                        true
                    }
                };
                if random.usize(..3) == 0 {
                    held.push_back(writer.finish());
                }
                refused
            };
            refusals += usize::from(refused);
            let count = match random.usize(..4) {
                _ if refused => 1 + random.usize(..held.len().max(1)),
                0 => 1,
                _ => 0,
            };
            order.release(&mut held, count, &mut random);
        }
    }
    assert!(refusals > 0, "no program was refused anything");
}

/// Checks that a pool that was set up as its guide says for n buffers of equal size serves n at
/// once, in any order of release (T27 for promises).
///
/// `promised` makes such a pool, from the number of buffers and the size of each; `is_fallback`
/// says that a buffer came from elsewhere, which breaks the promise.
pub fn t27_equal_buffers<P: BufferPool>(
    promised: impl Fn(usize, usize) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
) {
    // More than any bounded search looks at, too.
    for (seed, n) in (0..).zip([1, 2, 3, 7, 8, 64, 65, 200, 500]) {
        let mut random = Rng::with_seed(seed);
        let (odd, near) = (1 + random.usize(..5000), thresholds::any(random.usize(..)).clamp(1, 20_000));
        for bytes in [1, 15, 16, 17, 100, 1000, 1023, 1024, 1088, 1500, 4096, odd, near] {
            let mut pool = promised(n, bytes);
            let mut held = VecDeque::new();
            for round in 0..8 {
                let order = Order::ALL[random.usize(..Order::ALL.len())];
                while held.len() < n {
                    let context = || {
                        format!("the buffer {} of {n} of {bytes} bytes, round {round}, {order:?}", held.len())
                    };
                    match pool.acquire(bytes) {
                        Ok(buf) => {
                            assert!(buf.capacity() >= bytes, "{}: {} bytes", context(), buf.capacity());
                            assert!(!is_fallback(&buf), "{}: not of the region", context());
                            held.push_back(buf);
                        }
                        Err(error) => panic!("{}: {error}", context()),
                    }
                }
                // Few, or many, or all.
                let count = [1, n / 2 + 1, n, random.usize(..=n)][random.usize(..4)];
                order.release(&mut held, count, &mut random);
            }
        }
    }
}
