//! Users' parts that lie (T21), panic (T22) or come back in (T23), where the vocabulary itself calls them.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bufcore::strategy::{Counters, Released, Served, Tracker};
use bufcore::{
    AcquireError, Buf, BufferPool, ByteSink, ByteSource, FrameBuffer, HeapLease, HeapPool, PoolStats,
    ReserveError,
};

/// Returns buffers that are filled already, and as much larger or smaller than was asked for as it is told.
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

/// A frame buffer whose room is not as long as was asked for.
struct Frames([u8; 8]);

impl FrameBuffer for Frames {
    type Lease = HeapLease;

    fn writable(&mut self, _: usize) -> Result<&mut [u8], AcquireError> {
        Ok(&mut self.0[..3])
    }

    fn filled(&self) -> &[u8] {
        &self.0
    }

    fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn consume(&mut self, _: usize) {}

    fn truncate(&mut self, _: usize) {}

    fn detach(&mut self) -> Result<Buf<HeapLease>, AcquireError> {
        Err(AcquireError::OutOfMemory { requested: 0 })
    }
}

#[test]
fn t21_frames_that_lend_another_length() {
    let mut frames = Frames([0; 8]);
    frames.extend_from_slice(b"abc").expect("as long as it lends");
    for bytes in [&b"ab"[..], b"abcd", &[1; 5000]] {
        assert!(catch_unwind(AssertUnwindSafe(|| frames.extend_from_slice(bytes))).is_err());
    }
    assert_eq!(frames.0, *b"abc\0\0\0\0\0");
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
