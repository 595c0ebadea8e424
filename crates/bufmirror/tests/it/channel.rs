//! Channels: two threads, waits, ends that go.

use std::future::Future;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bufmirror::bufcore::ReserveError;
use bufmirror::{Builder, ConfigError, GetError, WaitError, channel};
use testkit::process::alone;
use testkit::trials::scaled;

use crate::ring::{Ends, Ring, ends};

/// Long enough for the other thread to fall asleep.
const A_WHILE: Duration = Duration::from_millis(30);
/// Long enough for anything.
const LONG: Duration = Duration::from_secs(60);
/// Who was not woken by then never will be.
const PATIENCE: Duration = Duration::from_secs(10);

/// The byte at a place of the stream.
fn word(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

/// Streams `words` words of 8 bytes between two threads, in pieces of random lengths; every byte is
/// compared.
fn stream(capacity: usize, words: u64, largest: usize) {
    let (mut producer, mut consumer) = channel(capacity).expect("the system maps");
    let writer = thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(1);
        let mut at = 0;
        while at < words {
            let count = random.u64(1..=(largest / 8) as u64).min(words - at) as usize;
            producer.wait(8 * count).expect("the consumer lives");
            let room = producer.reserve(8 * count).expect("waited for");
            for (at, place) in (at..).zip(room.chunks_exact_mut(8)) {
                place.copy_from_slice(&word(at).to_ne_bytes());
            }
            producer.commit(8 * count);
            at += count as u64;
        }
    });
    let mut at = 0;
    while at < words {
        consumer.wait(8).expect("more is to come");
        let filled = consumer.peek();
        let count = filled.len() / 8;
        for (at, found) in (at..).zip(filled.chunks_exact(8)) {
            assert_eq!(found, word(at).to_ne_bytes(), "word {at}");
        }
        consumer.consume(8 * count);
        at += count as u64;
    }
    assert_eq!(consumer.wait(1), Err(WaitError::Closed { requested: 1, available: 0 }));
    writer.join().unwrap();
}

/// 5 GB in a release build; `BUFTEST_COUNT=20000000` makes it 100 GB.
#[test]
fn t01_a_long_stream() {
    let bytes = scaled(5_000_000) as u64 * 1000;
    stream(64 << 10, bytes / 8, 20_000);
}

#[test]
fn t01_a_stream_through_one_page() {
    stream(1, scaled(10_000_000) as u64, 4096);
}

/// By `std::io`, in pieces longer than the ring.
#[test]
fn t01_blocking_io() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let bytes: Arc<[u8]> = (0..scaled(20_000_000) as u64 / 8).flat_map(|at| word(at).to_ne_bytes()).collect();
    let sent = Arc::clone(&bytes);
    let writer = thread::spawn(move || {
        for piece in sent.chunks(50_001) {
            producer.write_all(piece).unwrap();
            producer.flush().unwrap();
        }
    });
    let mut read = Vec::new();
    consumer.read_to_end(&mut read).unwrap();
    assert!(read == bytes[..]);
    assert_eq!(consumer.read(&mut [0; 4]).unwrap(), 0, "the end stays");
    writer.join().unwrap();
}

#[test]
fn io_in_pieces() {
    let Ends(mut producer, mut consumer) = ends(4096);
    let capacity = producer.capacity();
    assert_eq!(producer.write(&[]).unwrap(), 0);
    let many = vec![7; capacity];
    assert_eq!((producer.write(b"abcde").unwrap(), producer.write(&many).unwrap()), (5, capacity - 5));
    let mut four = [0; 4];
    assert_eq!(consumer.read(&mut four).unwrap(), 4);
    assert_eq!(&four, b"abcd");
    assert_eq!(consumer.read(&mut []).unwrap(), 0);
    let mut long = vec![0; capacity + 1000];
    assert_eq!(consumer.read(&mut long).unwrap(), capacity - 4);
    assert!(long[0] == b'e' && long[1..capacity - 4].iter().all(|&byte| byte == 7));
    producer.write_all(b"line\nli").unwrap();
    let mut line = String::new();
    assert_eq!(consumer.read_line(&mut line).unwrap(), 5);
    assert_eq!(consumer.fill_buf().unwrap(), b"li");
    let mut three = [0; 3];
    assert_eq!(consumer.read(&mut three).unwrap(), 2, "what there is, without a wait for more");
    assert_eq!(&three, b"li\0");
    producer.write_all(b"li").unwrap();
    drop(producer);
    assert_eq!(consumer.read_exact(&mut [0; 3]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(consumer.fill_buf().unwrap(), b"");
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let Ends(mut producer, mut consumer) = ends(1);
    let capacity = producer.capacity();
    producer.put(b"hello").unwrap();
    for n in [capacity - 4, capacity, usize::MAX] {
        let refused = ReserveError { requested: n, available: capacity - 5 };
        assert_eq!(producer.reserve(n).unwrap_err(), refused);
        let panic = catch_unwind(AssertUnwindSafe(|| producer.commit(n))).unwrap_err();
        let said = format!("commit({n}) of {} bytes of room", capacity - 5);
        assert_eq!(*panic.downcast_ref::<String>().unwrap(), said);
    }
    assert_eq!(producer.put(&vec![1; capacity]).unwrap_err().available, capacity - 5);
    for n in [6, capacity, usize::MAX] {
        let panic = catch_unwind(AssertUnwindSafe(|| consumer.consume(n))).unwrap_err();
        assert_eq!(*panic.downcast_ref::<String>().unwrap(), format!("consume({n}) of 5 bytes to read"));
    }
    assert_eq!(consumer.get(&mut [0; 6]), Err(GetError { requested: 6, available: 5 }));
    assert!(consumer.peek_exact(6).is_none());
    assert_eq!(consumer.peek_exact(5), Some(&b"hello"[..]));
    assert_eq!(consumer.len(), 5);
    let too_long = WaitError::TooLong { requested: capacity + 1, capacity };
    assert_eq!(producer.wait(capacity + 1), Err(too_long));
    assert_eq!(consumer.wait(capacity + 1), Err(too_long));
}

#[test]
fn t05_absurd_sizes() {
    assert_eq!(channel(0).unwrap_err(), ConfigError::Zero { setting: "capacity" });
    for bytes in [usize::MAX / 2 + 1, usize::MAX] {
        let refused = channel(bytes).unwrap_err();
        assert!(
            matches!(refused, ConfigError::TooLarge { requested, .. } if requested == bytes),
            "{refused}"
        );
    }
    let (mut producer, _consumer) = Builder::new().capacity(1).populate(true).channel().unwrap();
    assert!(matches!(producer.wait(usize::MAX), Err(WaitError::TooLong { requested: usize::MAX, .. })));
}

/// Sleeping ends are woken by what they wait for, and not before.
#[test]
fn sleepers_are_woken() {
    let Ends(mut producer, mut consumer) = ends(4096);
    let capacity = producer.capacity();
    let started = Instant::now();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            consumer.wait_timeout(capacity, PATIENCE).unwrap();
            let len = consumer.len();
            thread::sleep(A_WHILE);
            consumer.consume(1000);
            len
        });
        thread::sleep(A_WHILE);
        producer.commit(capacity - 1);
        thread::sleep(A_WHILE);
        assert!(!reader.is_finished());
        producer.commit(1);
        producer.wait_timeout(1000, PATIENCE).unwrap();
        assert_eq!(producer.spare_capacity(), 1000);
        assert_eq!(reader.join().unwrap(), capacity);
        assert!(started.elapsed() < PATIENCE, "nobody was woken");
    });
}

#[test]
fn time_runs_out() {
    let Ends(mut producer, mut consumer) = ends(4096);
    let started = Instant::now();
    let timed_out = Err(WaitError::TimedOut { requested: 1, available: 0 });
    assert_eq!(consumer.wait_timeout(1, A_WHILE), timed_out);
    assert_eq!(consumer.wait_timeout(1, Duration::ZERO), timed_out);
    producer.commit(producer.capacity());
    assert_eq!(producer.wait_timeout(1, A_WHILE), timed_out);
    assert!(started.elapsed() >= 2 * A_WHILE);
    consumer.consume(10);
    assert_eq!(producer.wait_timeout(10, Duration::ZERO), Ok(()));
    assert_eq!(consumer.wait_timeout(consumer.capacity() - 10, Duration::MAX), Ok(()));
}

/// Who sleeps is told when the other end goes, whichever way it does.
#[test]
fn t06_an_end_that_goes_wakes_the_other() {
    let started = Instant::now();
    for unwinds in [false, true] {
        let Ends(mut producer, mut consumer) = ends(4096);
        producer.put(b"left").unwrap();
        let reader = thread::spawn(move || {
            let ended = consumer.wait_timeout(5, PATIENCE);
            assert_eq!(ended, Err(WaitError::Closed { requested: 5, available: 4 }));
            assert!(consumer.is_closed());
            assert_eq!(consumer.peek(), b"left");
            let mut rest = Vec::new();
            consumer.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"left");
        });
        thread::sleep(A_WHILE);
        let writer = thread::spawn(move || {
            let _held = producer;
            assert!(!unwinds, "on purpose");
        });
        assert_eq!(writer.join().is_err(), unwinds);
        reader.join().unwrap();
    }
    for unwinds in [false, true] {
        let Ends(mut producer, consumer) = ends(4096);
        producer.commit(producer.capacity());
        let writer = thread::spawn(move || {
            let ended = producer.wait_timeout(1, PATIENCE);
            assert_eq!(ended, Err(WaitError::Closed { requested: 1, available: 0 }));
            assert!(producer.is_closed());
            assert_eq!(producer.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
        thread::sleep(A_WHILE);
        let reader = thread::spawn(move || {
            let _held = consumer;
            assert!(!unwinds, "on purpose");
        });
        assert_eq!(reader.join().is_err(), unwinds);
        writer.join().unwrap();
    }
    assert!(started.elapsed() < PATIENCE, "nobody was woken");
    // Room is of no use when nobody reads.
    let Ends(mut producer, consumer) = ends(4096);
    drop(consumer);
    assert_eq!(producer.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    let all = producer.capacity();
    assert_eq!(producer.wait(1), Err(WaitError::Closed { requested: 1, available: all }));
}

/// A forgotten end never closes; the other one is not harmed, and its waits with a time-out end.
#[test]
fn t07_a_forgotten_end() {
    alone(module_path!(), "t07_a_forgotten_end", LONG, || {
        for _ in 0..1000 {
            let Ends(mut producer, mut consumer) = ends(1);
            producer.put(b"x").unwrap();
            #[allow(clippy::mem_forget, reason = "it is what this is about")]
            std::mem::forget(producer);
            assert_eq!(consumer.get_some(&mut [0; 2]), 1);
            assert!(matches!(consumer.wait_timeout(1, Duration::ZERO), Err(WaitError::TimedOut { .. })));
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn t12_channels_give_all_back() {
    alone(module_path!(), "t12_channels_give_all_back", LONG, || {
        use testkit::process::{address_space_bytes, mappings, open_files};
        let held = || [open_files(), mappings(), address_space_bytes()];
        drop(ends(1));
        let before = held();
        for n in 0..10_000 {
            let Ends(mut producer, mut consumer) = ends(n % 4 * 4096 + 1);
            producer.put(b"touched").unwrap();
            // Either may be the last.
            if n % 2 == 0 {
                drop(producer);
                assert_eq!(consumer.peek(), b"touched");
            } else {
                drop(consumer);
                assert!(producer.is_closed());
            }
        }
        assert_eq!(held(), before, "descriptors, mappings, address space");
    });
}

/// Wakes a thread, and counts how often.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(LONG);
    }
}

#[test]
fn futures() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let count = scaled(1_000_000) as u64;
    let writer = thread::spawn(move || {
        for at in 0..count {
            block_on(producer.wait_async(8)).unwrap();
            producer.put(&word(at).to_ne_bytes()).unwrap();
        }
    });
    for at in 0..count {
        block_on(consumer.wait_async(8)).unwrap();
        let mut found = [0; 8];
        consumer.get(&mut found).unwrap();
        assert_eq!(found, word(at).to_ne_bytes());
    }
    let closed = WaitError::Closed { requested: 8, available: 0 };
    assert_eq!(block_on(consumer.wait_async(8)), Err(closed));
    writer.join().unwrap();
}

/// The waker of the last poll counts; a future that was dropped has no part in it.
#[test]
fn a_dropped_future_loses_nothing() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            // ORDER: Relaxed: one thread.
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let count = || Arc::new(Count(std::sync::atomic::AtomicUsize::new(0)));
    // ORDER: Relaxed: one thread.
    let woken = |count: &Arc<Count>| count.0.load(std::sync::atomic::Ordering::Relaxed);
    let (first, second) = (count(), count());
    let Ends(mut producer, mut consumer) = ends(4096);
    for waker in [&first, &second] {
        let waker = Arc::clone(waker).into();
        let mut cx = Context::from_waker(&waker);
        assert!(pin!(consumer.wait_async(2)).poll(&mut cx).is_pending());
    }
    producer.put(b"a").unwrap();
    assert_eq!((woken(&first), woken(&second)), (0, 1));
    producer.put(b"b").unwrap();
    assert_eq!(woken(&second), 1, "it has not looked since");
    assert_eq!(consumer.poll_wait(&Context::from_waker(&Arc::clone(&first).into()), 2), Poll::Ready(Ok(())));
    assert_eq!((woken(&first), Arc::strong_count(&first)), (0, 1), "nothing is kept of who was served");
}

/// The ends may be used by one thread, in turn with the other's.
#[test]
fn t11_recycled_bytes_are_not_read() {
    let mut both = ends(1);
    let capacity = both.capacity();
    both.put(&vec![0x5E; capacity]).unwrap();
    both.consume(capacity);
    assert_eq!((both.len(), both.peek().len(), both.get_some(&mut [0; 8])), (0, 0, 0));
    both.put(b"new").unwrap();
    assert_eq!(both.peek(), b"new");
}

/// All that comes from a reader goes through a channel into a writer, one call at a time, by two
/// threads.
#[test]
fn from_a_reader_to_a_writer() {
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let (mut producer, mut consumer) = channel(4096).expect("the system maps");
    let mut socket = &bytes[..];
    let passed_on = thread::scope(|scope| {
        scope.spawn(move || {
            while producer.read_from(&mut socket).expect("the consumer lives") > 0 {}
            assert!(socket.is_empty());
        });
        let mut out = Vec::new();
        while consumer.write_to(&mut out).expect("a vector takes all") > 0 {}
        assert!(consumer.is_closed() && consumer.is_empty());
        out
    });
    assert!(passed_on == bytes);
}

#[test]
fn a_full_channel_waits_for_room_and_not_for_ever() {
    let (mut producer, mut consumer) = channel(1).expect("the system maps");
    let capacity = producer.capacity();
    let mut endless = std::io::repeat(7);
    // Pages of 64 KiB do not fill at once.
    while producer.spare_capacity() > 0 {
        assert!((1..=capacity).contains(&producer.read_from(&mut endless).expect("room")));
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(A_WHILE);
            consumer.consume(5);
        });
        assert_eq!(producer.read_from(&mut endless).expect("five bytes are free"), 5);
    });
    drop(consumer);
    assert_eq!(producer.read_from(&mut endless).expect_err("closed").kind(), ErrorKind::BrokenPipe);
}

/// Who only wants to know how much there is need not have the end for itself.
#[test]
fn counts_by_shared_borrows() {
    let (mut producer, mut consumer) = channel(1).expect("the system maps");
    let capacity = producer.capacity();
    let counts = |producer: &bufmirror::Producer, consumer: &bufmirror::Consumer| {
        (producer.spare_capacity(), consumer.len(), consumer.is_empty())
    };
    assert_eq!(counts(&producer, &consumer), (capacity, 0, true));
    producer.put(b"hello").expect("room");
    assert_eq!(counts(&producer, &consumer), (capacity - 5, 5, false));
    consumer.consume(2);
    assert_eq!(counts(&producer, &consumer), (capacity - 3, 3, false));
    producer.close();
    assert_eq!(counts(&producer, &consumer), (0, 3, false));
}

#[test]
fn lines_of_a_channel_are_consumed_as_they_are_looked_at() {
    let (mut producer, mut consumer) = channel(1).expect("the system maps");
    let reader = thread::spawn(move || {
        let mut lines = Vec::new();
        loop {
            if let Err(error) = consumer.wait_piece(b'\n') {
                return (lines, error, consumer.len());
            }
            for line in &mut consumer.pieces(b'\n') {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
        }
    });
    let expected: Vec<_> = (0..2000).map(|line| format!("line {line}")).collect();
    for line in &expected {
        writeln!(producer, "{line}").expect("the consumer lives");
    }
    producer.write_all(b"rest").expect("the consumer lives");
    drop(producer);
    let (lines, error, left) = reader.join().unwrap();
    assert!(lines == expected);
    assert_eq!((error, left), (WaitError::Closed { requested: 5, available: 4 }, 4));
}

/// A reader that looks at lines while more of them come, up to a full ring, sees each by itself.
#[test]
fn lines_that_come_amid_the_look_are_lines() {
    type Wait = fn(&mut bufmirror::Consumer) -> Result<(), WaitError>;
    let waits: [Wait; 3] = [
        |consumer| consumer.wait_piece(b'\n'),
        |consumer| consumer.wait_piece_timeout(b'\n', LONG),
        |consumer| block_on(consumer.wait_piece_async(b'\n')),
    ];
    for wait in waits {
        let (mut producer, mut consumer) = channel(1).expect("the system maps");
        let line = |number: usize| format!("{number} {}", "=".repeat(number * 7 % 300));
        let reader = thread::spawn(move || {
            let mut next = 0;
            let end = loop {
                if let Err(error) = wait(&mut consumer) {
                    break error;
                }
                for found in &mut consumer.pieces(b'\n') {
                    assert_eq!(found, line(next).as_bytes());
                    next += 1;
                    // Lets the writer fill the ring.
                    if next % 50 == 0 {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
            };
            (next, end)
        });
        for number in 0..3000 {
            writeln!(producer, "{}", line(number)).expect("the consumer lives");
        }
        drop(producer);
        let end = WaitError::Closed { requested: 1, available: 0 };
        assert_eq!(reader.join().expect("all lines are right"), (3000, end));
    }
}

#[test]
fn a_line_longer_than_the_channel_is_an_error() {
    let (mut producer, mut consumer) = channel(1).expect("the system maps");
    let capacity = consumer.capacity();
    producer.put(&vec![b'x'; capacity]).expect("it is empty");
    assert_eq!((&mut consumer.pieces(b'\n')).into_iter().count(), 0);
    let requested = capacity + 1;
    assert_eq!(consumer.wait_piece(b'\n'), Err(WaitError::TooLong { requested, capacity }));
}

/// One call moves 32 KiB at most, or an eighth of a ring where that is more.
#[test]
fn reads_and_writes_of_a_part_and_a_byte_less_or_more() {
    for capacity in [64 << 10, 256 << 10, 512 << 10] {
        let (mut producer, mut consumer) = channel(capacity).unwrap();
        let part = (32 << 10).max(capacity / 8);
        for len in [part - 1, part, part + 1, capacity] {
            let mut source = &vec![7; len][..];
            assert_eq!(producer.read_from(&mut source).unwrap(), len.min(part));
            let written = producer.put_some(source);
            assert_eq!((written, consumer.len()), (source.len(), len));
            let mut target = Vec::new();
            assert_eq!(consumer.write_to(&mut target).unwrap(), len.min(part));
            consumer.consume(len - target.len());
        }
    }
}
