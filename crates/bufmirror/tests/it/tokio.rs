//! The ends of a channel, and rings, in the hands of tokio.

use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread;

use bufmirror::{Consumer, MirrorRing, Producer, channel};
use bytes::Buf;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy_buf, duplex,
};
use tokio_util::io::poll_read_buf;

use crate::mapped;

/// Many times around a ring of a page.
const BYTES: usize = 1 << 20;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Bytes of which no window looks like another.
fn noise() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes = vec![0; BYTES];
    random.fill(&mut bytes);
    bytes
}

/// A read into nothing ends at once, with nothing to read.
#[test]
fn reading_nothing() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut read = |into: &mut [u8]| {
        let mut into = ReadBuf::new(into);
        Pin::new(&mut consumer)
            .poll_read(&mut cx, &mut into)
            .map(|done| done.map(|()| into.filled().len()).unwrap())
    };
    assert_eq!((read(&mut []), read(&mut [0; 8])), (Poll::Ready(0), Poll::Pending));
    producer.put(b"abc").unwrap();
    assert_eq!((read(&mut []), read(&mut [0; 8])), (Poll::Ready(0), Poll::Ready(3)));
}

/// Writes in pieces of all sizes, some larger than the ring.
async fn send(mut producer: Producer, bytes: &[u8]) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(random.usize(1..=6000).min(rest.len()));
        producer.write_all(now).await.unwrap();
        rest = later;
    }
    producer.shutdown().await.unwrap();
    // Kept until here: the consumer has to end by the shutdown, not by a drop.
    assert!(producer.is_closed());
}

/// Reads into buffers of all sizes, to the end.
async fn receive(consumer: &mut Consumer) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(2);
    let mut came = Vec::new();
    loop {
        let mut piece = vec![0; random.usize(1..=6000)];
        match consumer.read(&mut piece).await.unwrap() {
            0 => return came,
            n => came.extend_from_slice(&piece[..n]),
        }
    }
}

#[test]
fn every_byte_between_two_tasks() {
    let bytes = noise();
    let (producer, mut consumer) = channel(4096).unwrap();
    let came = runtime().block_on(async { tokio::join!(send(producer, &bytes), receive(&mut consumer)).1 });
    assert!(came == bytes);
}

#[test]
fn every_byte_between_two_runtimes() {
    let bytes = noise();
    let (producer, mut consumer) = channel(4096).unwrap();
    let came = thread::scope(|scope| {
        scope.spawn(|| runtime().block_on(send(producer, &bytes)));
        runtime().block_on(receive(&mut consumer))
    });
    assert!(came == bytes);
}

#[test]
fn lines_are_whole_wherever_they_lie() {
    let lines: Vec<String> = (0..3000).map(|n| format!("{n}: {}", "x".repeat(n % 120))).collect();
    let text = lines.join("\n");
    let (producer, consumer) = channel(4096).unwrap();
    let read = async {
        let (mut read, mut found) = (consumer.lines(), Vec::new());
        while let Some(line) = read.next_line().await.unwrap() {
            found.push(line);
        }
        found
    };
    let found = runtime().block_on(async { tokio::join!(send(producer, text.as_bytes()), read).1 });
    assert_eq!(found, lines);
}

#[test]
fn from_one_channel_into_another() {
    let bytes = noise();
    let (producer, mut middle) = channel(4096).unwrap();
    let (mut onward, mut consumer) = channel(8192).unwrap();
    let pass_on = async {
        let n = copy_buf(&mut middle, &mut onward).await.unwrap();
        onward.shutdown().await.unwrap();
        n
    };
    let ((), n, came) =
        runtime().block_on(async { tokio::join!(send(producer, &bytes), pass_on, receive(&mut consumer)) });
    assert_eq!(n, BYTES as u64);
    assert!(came == bytes);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        // ORDER: Relaxed: one thread.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counting {
    fn count(&self) -> usize {
        // ORDER: Relaxed: one thread.
        self.0.load(Ordering::Relaxed)
    }
}

fn poll_read(consumer: &mut Consumer, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
    let mut memory = [0; 16];
    let mut into = ReadBuf::new(&mut memory);
    Pin::new(consumer).poll_read(cx, &mut into).map(|result| result.map(|()| into.filled().to_vec()).unwrap())
}

#[test]
fn the_last_to_poll_is_woken_and_once() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let wakes = [Arc::<Counting>::default(), Arc::default()];
    let wakers = [0, 1].map(|index| Arc::clone(&wakes[index]).into());
    let [mut first, mut last] = [0, 1].map(|index: usize| Context::from_waker(&wakers[index]));
    let counts = || [wakes[0].count(), wakes[1].count()];
    assert!(poll_read(&mut consumer, &mut first).is_pending());
    assert!(poll_read(&mut consumer, &mut last).is_pending());
    assert_eq!(counts(), [0, 0]);
    assert!(matches!(Pin::new(&mut producer).poll_write(&mut first, b"ab"), Poll::Ready(Ok(2))));
    assert!(matches!(Pin::new(&mut producer).poll_write(&mut first, b"c"), Poll::Ready(Ok(1))));
    assert_eq!(counts(), [0, 1], "asleep once, woken once");
    assert_eq!(poll_read(&mut consumer, &mut last), Poll::Ready(b"abc".to_vec()));
    assert!(poll_read(&mut consumer, &mut first).is_pending());
    assert!(Pin::new(&mut producer).poll_shutdown(&mut last).is_ready());
    assert_eq!(counts(), [1, 1], "an end wakes, too");
    assert_eq!(poll_read(&mut consumer, &mut first), Poll::Ready(vec![]));
}

#[test]
fn a_full_ring_makes_the_writer_wait() {
    let (mut producer, mut consumer) = channel(1).unwrap();
    let wakes = Arc::<Counting>::default();
    let waker = Arc::clone(&wakes).into();
    let mut cx = Context::from_waker(&waker);
    let much = vec![7; producer.capacity() + 5];
    let Poll::Ready(Ok(n)) = Pin::new(&mut producer).poll_write(&mut cx, &much) else {
        panic!("there is room")
    };
    assert_eq!(n, producer.capacity());
    assert!(Pin::new(&mut producer).poll_write(&mut cx, &much[n..]).is_pending());
    assert_eq!(wakes.count(), 0);
    consumer.consume(2);
    assert_eq!(wakes.count(), 1);
    assert!(matches!(Pin::new(&mut producer).poll_write(&mut cx, &much[n..]), Poll::Ready(Ok(2))));
    assert!(Pin::new(&mut producer).poll_write(&mut cx, b"x").is_pending());
    drop(consumer);
    assert_eq!(wakes.count(), 2);
    let Poll::Ready(Err(error)) = Pin::new(&mut producer).poll_write(&mut cx, b"x") else { panic!("closed") };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn nothing_is_written_after_a_shutdown() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    runtime().block_on(async {
        producer.write_all(b"all there is").await.unwrap();
        producer.shutdown().await.unwrap();
        producer.shutdown().await.unwrap();
        assert_eq!(producer.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!((producer.spare_capacity(), producer.put_some(b"more")), (0, 0));
        assert!(producer.put(b"more").is_err() && producer.reserve(1).is_err());
        assert!(producer.wait(1).is_err(), "a thread does not wait for what cannot come, either");
        let mut text = String::new();
        consumer.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "all there is");
    });
}

#[test]
fn a_read_that_is_dropped_takes_nothing() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    runtime().block_on(async {
        let mut lost = [0; 4];
        {
            let mut read = pin!(consumer.read(&mut lost));
            assert!(poll_once(read.as_mut()).await.is_pending());
        }
        producer.write_all(b"abcd").await.unwrap();
        let mut four = [0; 4];
        consumer.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"abcd");
    });
}

/// Polls once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    core::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

#[test]
fn a_ring_between_a_reader_and_a_writer() {
    let bytes = noise();
    let (mut near, mut far) = duplex(3000);
    let mut ring = mapped(4096);
    runtime().block_on(async {
        let send = async {
            near.write_all(&bytes).await.unwrap();
            near.shutdown().await.unwrap();
        };
        let receive = async {
            let mut came = Vec::new();
            // `read_buf` fills what is free, `write_buf` empties what is there: both in one piece.
            while far.read_buf(&mut ring).await.unwrap() != 0 {
                if came.len() % 3 == 0 {
                    let n = came.write_buf(&mut ring).await.unwrap();
                    assert!(n != 0);
                } else {
                    came.write_all_buf(&mut ring).await.unwrap();
                }
                if ring.spare_capacity() == 0 {
                    came.write_all_buf(&mut ring).await.unwrap();
                }
            }
            came.write_all_buf(&mut ring).await.unwrap();
            came
        };
        let ((), came) = tokio::join!(send, receive);
        assert!(came == bytes);
    });
}

#[test]
fn a_ring_takes_what_fits_from_poll_read_buf() {
    let (mut near, mut far) = duplex(1 << 16);
    let mut ring: MirrorRing = mapped(4096);
    let capacity = ring.capacity();
    runtime().block_on(async {
        near.write_all(&vec![1; capacity + 3]).await.unwrap();
        let mut next = async |ring: &mut MirrorRing| {
            core::future::poll_fn(|cx| poll_read_buf(Pin::new(&mut far), cx, ring)).await
        };
        assert_eq!(next(&mut ring).await.unwrap(), capacity);
        assert_eq!(next(&mut ring).await.unwrap(), 0, "a full ring has no room");
        assert_eq!(ring.chunk().len(), capacity, "one piece");
        ring.advance(100);
        assert_eq!(next(&mut ring).await.unwrap(), 3);
        assert_eq!(ring.chunk().len(), capacity - 97);
    });
}

#[test]
fn a_full_ring_is_an_error_of_read_from_async() {
    let (mut near, mut far) = duplex(1 << 16);
    let mut ring = mapped(4096);
    let capacity = ring.capacity();
    runtime().block_on(async {
        near.write_all(&vec![1; capacity + 3]).await.unwrap();
        assert_eq!(ring.read_from_async(&mut far).await.unwrap(), capacity);
        let full = ring.read_from_async(&mut far).await.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        ring.consume(100);
        assert_eq!(ring.read_from_async(&mut far).await.unwrap(), 3);
        near.shutdown().await.unwrap();
        assert_eq!(ring.read_from_async(&mut far).await.unwrap(), 0, "the end");
        assert_eq!(ring.len(), capacity - 97);
    });
}

/// From one socket to another, through a channel between two tasks.
#[test]
fn from_a_reader_to_a_writer() {
    let bytes = noise();
    let (mut near, mut from) = duplex(3000);
    let (mut to, mut far) = duplex(1000);
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let came = runtime().block_on(async {
        let send = async {
            near.write_all(&bytes).await.unwrap();
            near.shutdown().await.unwrap();
        };
        let fill = async move { while producer.read_from_async(&mut from).await.unwrap() > 0 {} };
        let drain = async {
            tokio::io::copy_buf(&mut consumer, &mut to).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let receive = async {
            let mut came = Vec::new();
            far.read_to_end(&mut came).await.unwrap();
            came
        };
        tokio::join!(send, fill, drain, receive).3
    });
    assert!(came == bytes);
}

/// A reader that puts a buffer of its own in the place of the one that it is lent, and fills it.
struct Exchanging {
    bytes: usize,
}

impl AsyncRead for Exchanging {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        *into = ReadBuf::new(vec![7; self.bytes].leak());
        into.set_filled(self.bytes);
        Poll::Ready(Ok(()))
    }
}

/// The bytes of such a reader are not in the ring, where older ones would pass for them.
#[test]
fn t21_a_reader_that_fills_another_buffer_commits_nothing() {
    for bytes in [1, 100, 4095, 4096, 4097, 1 << 20] {
        let mut ring = mapped(4096);
        let (mut producer, mut consumer) = channel(4096).unwrap();
        // What an earlier stream has left, and what is there.
        ring.put(&[9; 4096]).unwrap();
        ring.clear();
        ring.put(b"abc").unwrap();
        producer.put(&[9; 4096]).unwrap();
        consumer.consume(4096);
        producer.put(b"abc").unwrap();
        runtime().block_on(async {
            let mut reader = Exchanging { bytes };
            let read = ring.read_from_async(&mut reader).await;
            assert_eq!(ring.peek(), b"abc", "recycled bytes in the ring");
            let sent = producer.read_from_async(&mut reader).await;
            assert_eq!(consumer.peek(), b"abc", "recycled bytes in the channel");
            for result in [read, sent] {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidData, "{bytes} bytes");
            }
        });
    }
}
