//! Users' parts that lie (T21), panic (T22) or come back in (T23), where the vocabulary itself
//! calls them.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bufcore::author::{Counters, Released, Served, Tracker};
use bufcore::{
    AcquireError, Buf, BufferPool, ByteSink, ByteSource, HeapLease, HeapPool, PoolStats, ReserveError, Writer,
};

/// Returns buffers that are filled already, and as much larger or smaller than was asked for as it
/// is told.
struct Liar {
    heap: HeapPool,
    difference: isize,
}

impl BufferPool for Liar {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        let bytes = capacity.saturating_add_signed(self.difference);
        let mut buf = self.heap.acquire(bytes)?;
        buf.extend_from_slice(&vec![0xFF; bytes]).expect("asked for");
        Ok(buf)
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        let mut stats = PoolStats::default();
        (stats.in_use, stats.in_use_bytes) = (usize::MAX, usize::MAX);
        stats
    }
}

#[test]
fn t21_zeroed_means_zeroed() {
    for difference in [-30, -1, 0, 1, 30] {
        let mut pool = Liar { heap: HeapPool::new(), difference };
        match pool.acquire_zeroed(20) {
            Ok(buf) => assert!(difference >= 0 && buf[..] == [0; 20], "{difference}: {:?}", &buf[..]),
            Err(error) => {
                let available = 20_usize.saturating_add_signed(difference);
                assert_eq!(error, AcquireError::Exhausted { requested: 20, available });
            }
        }
    }
}

/// Lends room of a length of its own, and says of it what it likes.
struct Sink {
    room: Vec<u8>,
    refuses_with: Option<usize>,
    committed: usize,
}

impl ByteSink for Sink {
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        match self.refuses_with.take() {
            Some(available) => Err(ReserveError { requested: n, available }),
            None => Ok(&mut self.room),
        }
    }

    fn commit(&mut self, n: usize) {
        self.committed += n;
    }
}

#[test]
fn t21_sinks_that_do_not_lend_what_they_say() {
    for room in [0, 1, 4, 6, 100] {
        for refuses_with in [None, Some(0), Some(3), Some(7), Some(usize::MAX)] {
            let mut sink = Sink { room: vec![0; room], refuses_with, committed: 0 };
            let mut source = &b"hello"[..];
            let moved = bufcore::copy(&mut source, &mut sink);
            assert_eq!((moved, source.len()), (sink.committed, 5 - sink.committed));
        }
    }
}

/// Gives other bytes each time, and drops none.
struct Source(Cell<usize>);

impl ByteSource for Source {
    fn peek(&mut self) -> &[u8] {
        self.0.set(self.0.get() * 3 % 7);
        &b"hello!!"[..self.0.get()]
    }

    fn consume(&mut self, _: usize) {}
}

#[test]
fn t21_sources_that_change_their_mind() {
    for first in 0..7 {
        let mut sink = HeapPool::new().acquire(20).expect("room");
        assert_eq!(bufcore::copy(&mut Source(Cell::new(first)), &mut sink), sink.len());
    }
}

/// A pool that says that it has grown a buffer, and has not.
struct Still(HeapPool);

impl BufferPool for Still {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        self.0.acquire(capacity)
    }

    fn grow(&mut self, _: &mut Buf<HeapLease>, _: usize) -> Result<(), AcquireError> {
        Ok(())
    }

    fn max_capacity(&self) -> usize {
        self.0.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

#[test]
fn t21_a_pool_that_does_not_grow() {
    let mut writer = Writer::new(Still(HeapPool::new()));
    writer.extend_from_slice(b"head").expect("it was acquired");
    let refused = AcquireError::Exhausted { requested: 5, available: 0 };
    assert_eq!(writer.extend_from_slice(b"bytes"), Err(refused));
    assert_eq!(writer.writable(5).map(drop), Err(refused));
    assert_eq!(writer.filled(), b"head", "the frame is as it was");
    assert_eq!(writer.finish(), b"head");
}

/// Larger, smaller and filled buffers: a buffer that grows, and a frame that grows, keep their
/// bytes or are as they were.
#[test]
fn t21_growing_from_a_pool_that_lies() {
    let (head, body) = (b"head", [7; 40]);
    for difference in [-30, -1, 0, 1, 30] {
        let mut pool = Liar { heap: HeapPool::new(), difference };
        let mut buf = HeapPool::new().acquire(4).expect("room");
        buf.extend_from_slice(head).expect("room");
        let available = 44_usize.saturating_add_signed(difference);
        match pool.grow(&mut buf, 40) {
            Ok(()) => assert!(difference >= 0 && buf.capacity() >= 44),
            Err(error) => {
                let available = available.saturating_sub(4);
                assert_eq!(error, AcquireError::Exhausted { requested: 40, available });
            }
        }
        assert_eq!(buf, head);

        let mut frames = Writer::new(Liar { heap: HeapPool::new(), difference: 0 });
        frames.extend_from_slice(head).expect("it tells the truth");
        frames.get_mut().difference = difference;
        if let Err(error) = frames.extend_from_slice(&body) {
            let available = available.saturating_sub(4);
            assert!(difference < 0);
            assert_eq!(error, AcquireError::Exhausted { requested: 40, available });
            assert_eq!(frames.filled(), head, "the frame is as it was");
            frames.get_mut().difference = 0;
            frames.extend_from_slice(&body).expect("it tells the truth again");
        }
        let whole = [&head[..], &body].concat();
        assert_eq!((frames.filled(), frames.get_ref().max_capacity()), (&whole[..], usize::MAX));
        assert_eq!(frames.finish(), whole);
        assert_eq!(frames.into_inner().difference, difference.max(0));
    }
}

/// Refuses with what it is told, or panics where it is told nothing, once it has served as often as
/// it is told.
struct Refusing {
    heap: HeapPool,
    left: usize,
    with: Option<AcquireError>,
}

impl BufferPool for Refusing {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(self.with.expect("told to panic")),
        }
        self.heap.acquire(capacity)
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

/// What a frame says of a refusal is in numbers of what was asked of it, also when those of the
/// pool make no sense.
#[test]
fn t21_t22_frames_over_a_pool_that_refuses_and_panics() {
    use AcquireError::{Exhausted, OutOfMemory, TooLarge};
    let requested = 40;
    let refusals = [
        (Exhausted { requested: 44, available: 30 }, Exhausted { requested, available: 26 }),
        (Exhausted { requested: 1, available: usize::MAX }, Exhausted { requested, available: 39 }),
        (Exhausted { requested: 44, available: 3 }, Exhausted { requested, available: 0 }),
        (TooLarge { requested: 44, limit: 20 }, TooLarge { requested, limit: 16 }),
        (OutOfMemory { requested: 44 }, OutOfMemory { requested }),
    ];
    for (with, says) in refusals {
        let pool = Refusing { heap: HeapPool::new(), left: 1, with: Some(with) };
        let mut frames = Writer::new(pool);
        frames.extend_from_slice(b"head").expect("served once");
        assert_eq!(frames.extend_from_slice(&[1; 40]), Err(says));
        let too_long = frames.writable(usize::MAX).map(drop);
        assert_eq!(too_long, Err(TooLarge { requested: usize::MAX, limit: isize::MAX as usize - 4 }));
        frames.get_mut().with = None;
        assert!(catch_unwind(AssertUnwindSafe(|| frames.extend_from_slice(&[1; 40]))).is_err());
        assert_eq!(frames.filled(), b"head", "the frame is as it was");
        assert_eq!(frames.finish(), b"head");
    }
}

/// Claims what it likes, or panics, once it has written over all of the room.
struct Reader(Option<usize>);

impl io::Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        into.fill(b'x');
        Ok(self.0.expect("told to panic"))
    }
}

#[test]
fn t21_t22_readers_that_lie_and_panic() {
    let mut buf = HeapPool::new().acquire(8).expect("room");
    buf.extend_from_slice(b"abc").expect("room");
    for claim in [6, 8, usize::MAX] {
        let error = buf.read_from(&mut Reader(Some(claim))).expect_err("more than the room");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(catch_unwind(AssertUnwindSafe(|| buf.read_exact_from(&mut Reader(Some(claim)), 4))).is_err());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| buf.read_from(&mut Reader(None)))).is_err());
    assert_eq!(&buf[..], b"abc");
    assert_eq!(buf.read_from(&mut Reader(Some(2))).expect("room"), 2);
    assert_eq!(&buf[..], b"abcxx");
}

/// Another range each time it is asked.
struct Range(Cell<usize>);

impl RangeBounds<usize> for Range {
    fn start_bound(&self) -> Bound<&usize> {
        Bound::Excluded(&usize::MAX)
    }

    fn end_bound(&self) -> Bound<&usize> {
        Bound::Included(if self.0.replace(1) == 0 { &2 } else { &usize::MAX })
    }
}

#[test]
fn t21_ranges_that_lie() {
    let mut buf = HeapPool::new().acquire(8).expect("room");
    buf.extend_from_slice(b"abc").expect("room");
    let view = buf.freeze();
    for _ in 0..2 {
        assert!(catch_unwind(|| view.slice(Range(Cell::new(0)))).is_err());
        assert!(catch_unwind(|| view.slice(Range(Cell::new(1)))).is_err());
    }
    assert_eq!(view.slice((Bound::Excluded(0), Bound::Unbounded)), b"bc");
    assert!(view.try_into_mut().is_ok(), "no view was left behind");
}

#[test]
fn t21_statistics_that_lie() {
    let (mut counters, released) = (Counters::default(), Released::default());
    let nonsense = || Liar { heap: HeapPool::new(), difference: 0 }.stats();
    for _ in 0..3 {
        counters.acquired(Served::Reused, 100, &released, nonsense);
    }
    let stats = counters.snapshot(&released, &nonsense(), 7);
    assert_eq!(stats.reserved_bytes, 7);
    if cfg!(feature = "stats") {
        assert_eq!((stats.acquired, stats.in_use, stats.high_water_bytes), (3, usize::MAX, usize::MAX));
        // One that panics is asked before anything is counted.
        let panics = || -> PoolStats { panic!("told to panic") };
        let mut count = || counters.acquired(Served::Fallback, 1, &released, panics);
        assert!(catch_unwind(AssertUnwindSafe(&mut count)).is_err());
        assert_eq!(counters.snapshot(&released, &PoolStats::default(), 0).acquired, 3);
    }
}

/// A writer that has buffers noted on the list that it is told of: nothing is locked while it is.
#[test]
fn t23_what_is_out_is_printed_with_a_pool() {
    struct Writer<'a>(&'a Tracker, String);
    impl std::fmt::Write for Writer<'_> {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            drop(self.0.attach(HeapPool::new().acquire(text.len()).expect("room")));
            self.1.push_str(text);
            Ok(())
        }
    }
    let tracker = Tracker::default();
    let buf = tracker.attach(HeapPool::new().acquire(3).expect("room"));
    let mut writer = Writer(&tracker, String::new());
    write!(writer, "{tracker:?} {buf:?}").expect("it takes all");
    assert!(writer.1.contains("Tracker") && writer.1.contains("Buf"));
}
