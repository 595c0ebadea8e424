//! T21, T22 and T23 for pools over a fallback of the user's: one that lies, one that panics at its
//! n-th call, one that comes back in.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use bufcore::strategy::orphans;
use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats, SplitLease, Writer};

use crate::append::Append;
use crate::hostile::{Answer, Scripted};
use crate::pattern;

/// More than the region of any pool of these trials, so that the fallback is asked.
const LARGE: usize = 1 << 14;

/// Buffers that are out, each full of its own bytes.
struct Held<L: Lease> {
    bufs: Vec<(Buf<L>, u64)>,
    next: u64,
}

impl<L: Lease> Held<L> {
    fn new() -> Self {
        Self { bufs: Vec::new(), next: 100 }
    }

    /// Takes over a buffer, which is empty and holds `bytes` bytes at least.
    #[track_caller]
    fn put(&mut self, mut buf: Buf<L>, bytes: usize) {
        assert!(buf.is_empty() && buf.capacity() >= bytes, "{} of {bytes}, {buf:?}", buf.capacity());
        pattern::fill(buf.spare_mut(), self.next, 0);
        buf.commit(buf.capacity());
        self.bufs.push((buf, self.next));
        self.next += 1;
    }

    /// Checks that all of them have their bytes, and that no two of them, nor the open frame, have
    /// a byte in common.
    #[track_caller]
    fn check(&self, frame: &[u8]) {
        let mut ranges: Vec<_> = self.bufs.iter().map(|(buf, _)| buf.as_ptr_range()).collect();
        ranges.push(frame.as_ptr_range());
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| range.start);
        for pair in ranges.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{:?} and {:?} overlap", pair[0], pair[1]);
        }
        for (buf, seed) in &self.bufs {
            pattern::check(buf, *seed, 0);
        }
    }
}

/// Asserts that bytes are those of their model, without printing them all.
#[track_caller]
fn same(bytes: &[u8], model: &[u8], what: &str) {
    assert_eq!(bytes.len(), model.len(), "{what}");
    let wrong = bytes.iter().zip(model).position(|(byte, expected)| byte != expected);
    assert_eq!(wrong, None, "{what}: the first wrong byte");
}

/// Counts the buffers of 100 bytes that the pool has before it goes to its fallback.
fn room<P: BufferPool>(pool: &mut P, is_fallback: fn(&Buf<P::Lease>) -> bool) -> usize {
    let mut held = Vec::new();
    loop {
        let buf = pool.acquire(100).expect("the fallback is kind");
        if is_fallback(&buf) {
            return held.len();
        }
        held.push(buf);
        assert!(held.len() < LARGE, "more buffers than the region has bytes");
    }
}

/// Checks that the error of a refused request has the numbers of the request.
#[track_caller]
pub fn check_numbers(error: AcquireError, asked: usize) {
    match error {
        AcquireError::TooLarge { requested, limit: less }
        | AcquireError::Exhausted { requested, available: less } => {
            assert_eq!(requested, asked, "{error}");
            assert!(less < asked, "{error}: that is enough");
        }
        AcquireError::OutOfMemory { requested } => assert_eq!(requested, asked, "{error}"),
        _ => panic!("unknown error {error}"),
    }
}

/// Makes numbers that no pool has.
#[must_use]
pub fn nonsense() -> PoolStats {
    let mut stats = PoolStats::default();
    stats.acquired = u64::MAX;
    stats.reused = u64::MAX;
    stats.fresh = u64::MAX;
    stats.fallbacks = u64::MAX;
    stats.exhausted = u64::MAX;
    stats.in_use = usize::MAX;
    stats.in_use_bytes = usize::MAX;
    stats.high_water = usize::MAX;
    stats.high_water_bytes = usize::MAX;
    stats.reserved_bytes = usize::MAX;
    stats.pinned_bytes = usize::MAX;
    stats
}

/// Checks fallbacks that lie: buffers too short, too long or not empty, errors, limits and
/// statistics of nonsense (T21). Each request is served as promised or refused in its own numbers,
/// and all that is out stays as it is.
pub fn t21_lies<P: BufferPool<Lease: SplitLease>>(over: impl Fn(Scripted) -> P) {
    let buffer = |capacity, filled| Answer::Buffer { capacity, filled };
    let error = AcquireError::Exhausted { requested: 0, available: usize::MAX };
    // Each with whether a request that the region cannot serve is refused.
    let lies = [
        (buffer(LARGE - 1, 0), true),
        (buffer(LARGE / 2, LARGE / 2), true),
        (buffer(10, 0), true),
        (buffer(10, 10), true),
        (buffer(0, 0), true),
        (buffer(3 * LARGE, 0), false),
        (buffer(3 * LARGE, 1), false),
        (buffer(3 * LARGE, LARGE + 5), false),
        (buffer(3 * LARGE, 3 * LARGE), false),
        (Answer::Error(error), true),
        (Answer::Error(AcquireError::TooLarge { requested: 7, limit: usize::MAX }), true),
        (Answer::Error(AcquireError::TooLarge { requested: 7, limit: 0 }), true),
        (Answer::Error(AcquireError::OutOfMemory { requested: 3 }), true),
        (Answer::MaxCapacity(usize::MAX), false),
        (Answer::MaxCapacity(0), false),
        (Answer::Stats(nonsense()), false),
    ];
    for (lie, refused) in lies {
        let mut writer = Writer::new(over(Scripted::new(move |_| lie)));
        let mut held = Held::new();
        for _ in 0..3 {
            let pool = writer.get_mut();
            held.put(pool.acquire(100).expect("the region has room"), 100);
            match pool.acquire(LARGE) {
                Ok(buf) => {
                    assert!(!refused, "{lie:?}, but served");
                    held.put(buf, LARGE);
                }
                Err(error) => {
                    assert!(refused, "{lie:?}, but {error}");
                    check_numbers(error, LARGE);
                }
            }
            match pool.acquire_zeroed(LARGE) {
                Ok(buf) => {
                    assert!(!refused, "{lie:?}, but served");
                    assert!(buf.len() == LARGE && buf.iter().all(|&byte| byte == 0), "{lie:?}: zeroes");
                }
                Err(error) => check_numbers(error, LARGE),
            }
            check_numbers(pool.acquire(usize::MAX).expect_err("nobody has that"), usize::MAX);
            held.check(&[]);
            lied_to_frame(&mut writer, &held, lie, refused);
            // While that is open.
            held.put(writer.get_mut().acquire(50).expect("the region has room"), 50);
            held.put(writer.get_mut().acquire(50).expect("the region has room"), 50);
            held.check(writer.filled());
            drop(writer.finish());
            let stats = writer.get_ref().stats();
            assert!(stats.acquired < 100, "{stats:?}: what a pool has done itself it counts itself");
            writer.get_ref().max_capacity();
            held.bufs.clear();
        }
        drop(writer);
        held.check(&[]);
    }
}

/// Checks T21 for the open frame, which is closed before and left open.
fn lied_to_frame<P: BufferPool<Lease: SplitLease>>(
    frame: &mut Writer<P>,
    held: &Held<P::Lease>,
    lie: Answer,
    refused: bool,
) {
    pattern::fill(frame.append(200).expect("the region has room"), 5, 0);
    let before = frame.filled().len();
    match frame.append(LARGE - before) {
        Ok(room) => {
            assert!(!refused, "{lie:?}, but a frame grew");
            assert_eq!(room.len(), LARGE - before);
            pattern::fill(room, 5, before);
        }
        Err(error) => {
            assert!(refused, "{lie:?}, but {error}");
            check_numbers(error, LARGE - before);
        }
    }
    check_numbers(frame.append(usize::MAX).expect_err("nobody has that"), usize::MAX);
    let len = if refused { before } else { LARGE };
    assert_eq!(frame.filled().len(), len, "{lie:?}");
    pattern::check(frame.filled(), 5, 0);
    held.check(frame.filled());
    let buf = frame.finish();
    assert_eq!(buf.len(), len, "{lie:?}");
    pattern::check(&buf, 5, 0);
    assert!(frame.filled().is_empty());
    // One that opens with the fallback, and one in the region, which stays open.
    if let Ok(room) = frame.append(LARGE) {
        assert!(!refused && room.len() == LARGE, "{lie:?}");
        drop(frame.finish());
    }
    pattern::fill(frame.append(30).expect("the region has room"), 6, 0);
    held.check(frame.filled());
}

/// Checks fallbacks that panic at their n-th call, of whatever kind, for every n (T22). After each
/// panic all that is out and the open frame are as before. The same call succeeds, and in the end
/// the region has all of its room.
pub fn t22_panics<P: BufferPool<Lease: SplitLease>>(
    over: impl Fn(Scripted) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
) {
    let full = room(&mut over(Scripted::new(|_| Answer::Honest)), is_fallback);
    for panics_at in 1.. {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let mut pool = over(Scripted::new(move |call| {
            // ORDER: SeqCst, for ease.
            let number = counted.fetch_add(1, SeqCst) + 1;
            assert!(number != panics_at, "the fallback panics at its call {number}, {call:?}");
            Answer::Honest
        }));
        panicked_over(&mut pool);
        // ORDER: SeqCst, for ease.
        let done = calls.swap(usize::MAX / 2, SeqCst) < panics_at;
        assert_eq!(room(&mut pool, is_fallback), full, "room was lost to a panic at call {panics_at}");
        let stats = pool.stats();
        assert_eq!(stats.in_use, 0, "{stats:?} after a panic at call {panics_at}");
        if done {
            assert!(panics_at > 5, "the fallback was called");
            return;
        }
    }
}

/// Runs `op`, and once more if that panics, after `check`.
fn again<T>(mut op: impl FnMut() -> T, check: impl FnOnce()) -> T {
    match catch_unwind(AssertUnwindSafe(&mut op)) {
        Ok(value) => value,
        Err(_) => {
            check();
            op()
        }
    }
}

/// Runs the program of T22.
fn panicked_over<P: BufferPool<Lease: SplitLease>>(pool: &mut P) {
    let mut held = Held::new();
    let acquire = |pool: &mut P, held: &mut Held<P::Lease>, bytes: usize| {
        let buf = again(|| pool.acquire(bytes).expect("the fallback is kind"), || held.check(&[]));
        held.put(buf, bytes);
        held.check(&[]);
    };
    for bytes in [0, 50, LARGE, 60] {
        acquire(pool, &mut held, bytes);
    }
    let zeroed = again(|| pool.acquire_zeroed(LARGE).expect("the fallback is kind"), || held.check(&[]));
    assert!(zeroed.len() == LARGE && zeroed.iter().all(|&byte| byte == 0));
    drop(zeroed);
    for opens_with in [20, 2 * LARGE] {
        let mut model = Vec::new();
        let mut writer = Writer::new(&mut *pool);
        // In the region it can grow in place at first; then it is larger than that.
        session(&mut writer, &mut model, &mut held, &[opens_with, 30, LARGE, 9, 3 * LARGE]);
        // A buffer that is in its way now does not matter to it.
        acquire(writer.get_mut(), &mut held, 40);
        same(writer.filled(), &model, "an open frame");
        writer.discard_front(7);
        model.drain(..7);
        held.check(writer.filled());
        session(&mut writer, &mut model, &mut held, &[8 * LARGE, 1]);
        again(|| assert!(writer.get_mut().acquire(usize::MAX).is_err()), || held.check(&[]));
        again(|| writer.get_ref().stats(), || held.check(&[]));
        again(|| assert!(writer.get_ref().max_capacity() >= LARGE), || held.check(&[]));
        again(|| assert!(writer.writable(usize::MAX).is_err()), || held.check(&[]));
        same(&writer.finish(), &model, "a finished frame");
        // Another one at once, in the region, which is finished and goes.
        model.clear();
        assert!(grow(&mut writer, &mut model, 33, &held) || grow(&mut writer, &mut model, 33, &held));
        same(&writer.finish(), &model, "a finished frame");
        // And none.
        assert!(writer.finish().is_empty());
        drop(writer);
        held.check(&[]);
        held.bufs.truncate(3);
    }
}

/// Appends to the frame in one go. If that panics, another buffer is acquired before it continues:
/// it has nothing of the frame's.
fn session<P: BufferPool<Lease: SplitLease>>(
    writer: &mut Writer<P>,
    model: &mut Vec<u8>,
    held: &mut Held<P::Lease>,
    mut sizes: &[usize],
) {
    while !sizes.is_empty() {
        while let Some((&bytes, rest)) = sizes.split_first()
            && grow(writer, model, bytes, held)
        {
            sizes = rest;
        }
        held.check(writer.filled());
        if !sizes.is_empty() {
            held.put(writer.get_mut().acquire(40).expect("the fallback panics once"), 40);
            held.check(writer.filled());
            same(writer.filled(), model, "the frame after a panic, and another buffer");
        }
    }
}

/// Appends `bytes` bytes to the frame and its model. If that panics, the frame is as before, and
/// takes a few bytes instead.
fn grow<P: BufferPool<Lease: SplitLease>>(
    writer: &mut Writer<P>,
    model: &mut Vec<u8>,
    bytes: usize,
    held: &Held<P::Lease>,
) -> bool {
    let append = |writer: &mut Writer<P>, model: &mut Vec<u8>, bytes: usize| {
        let stamp = model.len() as u8;
        let room = writer.append(bytes).expect("the fallback is kind");
        assert_eq!(room.len(), bytes);
        room.fill(stamp);
        model.resize(model.len() + bytes, stamp);
        same(writer.filled(), model, "an open frame");
        same(writer.filled_mut(), model, "an open frame");
        held.check(writer.filled());
    };
    let panicked = catch_unwind(AssertUnwindSafe(|| append(writer, model, bytes))).is_err();
    if panicked {
        same(writer.filled(), model, "the frame after a panic");
        same(writer.filled_mut(), model, "the frame after a panic");
        held.check(writer.filled());
        append(writer, model, 3);
    }
    !panicked
}

/// What a fallback of T23 has of the pool that it serves, and of others.
type Baggage = Arc<Mutex<Vec<Box<dyn Any + Send>>>>;

/// Checks fallbacks that use pools in the midst of each of their calls (T23). Such a fallback
/// releases buffers and views of the pool that it serves, ends another pool that has buffers out
/// and a frame open, uses a third one, and finds the pool that it serves in use.
pub fn t23_reentered<P: BufferPool<Lease: SplitLease> + Send + 'static>(
    over: impl Fn(Scripted) -> P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
) {
    let full = room(&mut over(Scripted::new(|_| Answer::Honest)), is_fallback);
    let baggage: Baggage = Arc::default();
    let lock = |baggage: &Baggage| baggage.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let (calls, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = {
        let (baggage, calls, dropped) = (Arc::clone(&baggage), Arc::clone(&calls), Arc::clone(&dropped));
        let mut third = over(Scripted::new(|_| Answer::Honest));
        move |_| {
            // ORDER: SeqCst, for ease, here and below.
            calls.fetch_add(1, SeqCst);
            let mut buf = third.acquire(LARGE).expect("the heap serves");
            pattern::fill(buf.spare_mut(), 1, 0);
            for _ in 0..2 {
                if let Some(thing) = lock(&baggage) {
                    drop(thing);
                    dropped.fetch_add(1, SeqCst);
                }
            }
            orphans::sweep();
            Answer::Honest
        }
    };
    let shared = Arc::new(Mutex::new(None));
    let served = Arc::downgrade(&shared);
    let mut script = script;
    let pool = over(Scripted::new(move |call| {
        let shared = served.upgrade();
        assert!(shared.is_none_or(|shared: Arc<Mutex<Option<P>>>| shared.try_lock().is_err()));
        script(call)
    }));
    *shared.lock().expect("not poisoned") = Some(pool);

    let put = |thing: Box<dyn Any + Send>| baggage.lock().expect("not poisoned").push(thing);
    let mut locked = shared.lock().expect("not poisoned");
    let pool = locked.as_mut().expect("just put there");
    let mut held = Held::new();
    for round in 0..30 {
        // The next call of the fallback lets go of these: a buffer, a view, another pool.
        for bytes in [100, 300, LARGE] {
            put(Box::new(pool.acquire(bytes).expect("the fallback is kind")));
            let mut view = pool.acquire(bytes).expect("the fallback is kind");
            view.resize(view.capacity(), 3).expect("as many as there are");
            put(Box::new(view.freeze()));
        }
        let mut other = over(Scripted::new(|_| Answer::Honest));
        let out = other.acquire(100).expect("the region has room");
        let mut other = Writer::new(other);
        other.append(70).expect("the region has room").fill(9);
        put(Box::new(other));
        put(Box::new(out));
        for bytes in [10, 200 + round, LARGE] {
            held.put(pool.acquire(bytes).expect("the fallback is kind"), bytes);
            held.check(&[]);
        }
        let mut model = Vec::new();
        let mut writer = Writer::new(&mut *pool);
        for bytes in [40, 500, LARGE, 2 * LARGE] {
            assert!(grow(&mut writer, &mut model, bytes, &held));
            put(Box::new(writer.get_mut().acquire(20).expect("the fallback is kind")));
        }
        same(&writer.finish(), &model, "a finished frame");
        drop(writer);
        held.check(&[]);
        held.bufs.drain(..held.bufs.len() / 2);
        pool.stats();
        pool.max_capacity();
    }
    held.bufs.clear();
    while let Some(thing) = lock(&baggage) {
        drop(thing);
    }
    assert_eq!(room(pool, is_fallback), full, "room was lost");
    // ORDER: SeqCst, as above.
    let (calls, dropped) = (calls.load(SeqCst), dropped.load(SeqCst));
    assert!(calls > 30 && dropped > 30, "{calls} calls, {dropped} things let go of");
}
