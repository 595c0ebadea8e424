//! Frames of tokio's sockets: futures that are dropped at every point, and budgets.

use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bufworks::frames::{
    Affix, Delimited, FrameError, FrameReader, Framing, LengthDelimited, Parsed, write_all_vectored_async,
    write_frames, write_frames_async,
};
use bufworks::net::ReadReady;
use bufworks::shard::ShardPool;
use bufworks::{AcquireError, HeapBuf, HeapLease, HeapPool};
use testkit::trials::scaled;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Either, framings, random_frames};

/// Is ready, and has bytes, when chance has it. It wakes the task each time that it is not.
struct Whim<'a> {
    bytes: &'a [u8],
    random: std::sync::Mutex<fastrand::Rng>,
}

impl Whim<'_> {
    fn is_ready(&self, cx: &Context<'_>) -> bool {
        cx.waker().wake_by_ref();
        self.random.lock().unwrap().bool()
    }
}

impl AsyncRead for Whim<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_ready(cx) {
            return Poll::Pending;
        }
        let most = self.random.lock().unwrap().usize(1..500);
        let (now, rest) = self.bytes.split_at(self.bytes.len().min(most).min(into.remaining()));
        into.put_slice(now);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

impl ReadReady for Whim<'_> {
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send {
        core::future::poll_fn(|cx| if self.is_ready(cx) { Poll::Ready(Ok(())) } else { Poll::Pending })
    }
}

/// Is there after some polls.
async fn acquire_late(bytes: usize, mut polls: u8) -> Result<HeapBuf, AcquireError> {
    core::future::poll_fn(|cx| {
        polls = polls.saturating_sub(1);
        cx.waker().wake_by_ref();
        if polls == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    HeapPool::new().acquire(bytes)
}

/// Polls each future a few times and drops it, until there is a frame.
fn read_dropped<F: Framing>(mut reader: FrameReader<Whim<'_>, F, HeapLease>, frames: &[Vec<u8>], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cx = Context::from_waker(Waker::noop());
    let mut expected = frames.iter();
    loop {
        let mut next = pin!(reader.next_frame_async(|bytes| acquire_late(bytes, random.u8(1..4))));
        let polls = fastrand::u8(1..8);
        let Some(answer) = (0..polls).find_map(|_| match next.as_mut().poll(&mut cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }) else {
            continue;
        };
        match answer.unwrap() {
            Some(frame) => assert!(frame == expected.next().expect("no more than were written")[..]),
            None => break,
        }
    }
    assert_eq!(expected.next(), None, "a frame is missing");
}

#[test]
fn dropped_futures_lose_nothing() {
    for seed in 0..scaled(40) as u64 {
        for framing in framings() {
            let mut random = fastrand::Rng::with_seed(seed);
            let frames = random_frames(&mut random, &framing, 30);
            let mut wire = Vec::new();
            let chunk = random.choice([1, 10, 100, 8192]).unwrap();
            let whim = |bytes| Whim { bytes, random: fastrand::Rng::with_seed(seed).into() };
            match framing {
                Either::Lengths(framing) => {
                    write_frames(&mut wire, &framing, &frames).unwrap();
                    read_dropped(FrameReader::new(whim(&wire), framing).chunks_of(chunk), &frames, seed);
                    read_dropped(FrameReader::new(whim(&wire), framing).by_frame(), &frames, seed);
                }
                Either::Delimited(framing) => {
                    write_frames(&mut wire, &framing, &frames).unwrap();
                    read_dropped(FrameReader::new(whim(&wire), framing).chunks_of(chunk), &frames, seed);
                }
            }
        }
    }
}

/// Frames that are no longer than their header. With `true`, the last of the eight bytes is behind
/// the payload.
struct Records(bool);

impl Framing for Records {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        Ok(match stream.len() {
            8.. => Parsed::Frame { payload: 0..8 - usize::from(self.0), total: 8 },
            _ => Parsed::Incomplete,
        })
    }

    fn max_bytes(&self) -> usize {
        8
    }

    fn around(&self, _frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        Ok([Affix::NONE; 2])
    }

    fn header_bytes(&self) -> usize {
        8
    }
}

/// Such a frame is returned when it has arrived, whether others follow, the stream ends, or the
/// client waits for its answer.
#[tokio::test]
async fn frames_that_are_all_header() {
    async fn check(framing: impl Framing, wire: &[u8], frames: &[&[u8]]) {
        let (mut client, socket) = pair().await;
        client.write_all(wire).await.unwrap();
        let mut reader = FrameReader::new(socket, framing).by_frame();
        for right in frames {
            let next = reader.next_frame_async(|bytes| acquire_late(bytes, 2));
            let frame = tokio::time::timeout(Duration::from_secs(20), next).await.expect("it has arrived");
            assert_eq!(frame.unwrap().unwrap(), **right);
        }
        drop(client);
        assert!(reader.next_frame_async(|bytes| acquire_late(bytes, 2)).await.unwrap().is_none());
    }
    check(Records(false), b"record 1record 2", &[b"record 1", b"record 2"]).await;
    check(Records(true), b"record1\nrecord2\n", &[b"record1", b"record2"]).await;
    let kept = LengthDelimited::new(100).skip(0);
    check(kept, b"\0\0\0\x04\0\0\0\x05x\0\0\0\x04", &[&[0, 0, 0, 4], &[0, 0, 0, 5, b'x'], &[0, 0, 0, 4]])
        .await;
}

/// Polls a stream to its end.
#[cfg(feature = "futures-core-0_3")]
fn polled<T>(stream: impl futures_core::Stream<Item = T> + Send) -> Vec<T> {
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut items = Vec::new();
    loop {
        match stream.as_mut().poll_next(&mut cx) {
            Poll::Ready(Some(item)) => items.push(item),
            Poll::Ready(None) => break,
            Poll::Pending => {}
        }
    }
    assert!(matches!(stream.poll_next(&mut cx), Poll::Ready(None)), "it has ended");
    items
}

#[cfg(feature = "futures-core-0_3")]
#[test]
fn a_stream_has_the_frames() {
    for seed in 0..scaled(40) as u64 {
        for framing in framings() {
            let Either::Lengths(framing) = framing else { continue };
            let mut random = fastrand::Rng::with_seed(seed);
            let frames = random_frames(&mut random, &Either::Lengths(framing), 30);
            let mut wire = Vec::new();
            write_frames(&mut wire, &framing, &frames).unwrap();
            let whim = Whim { bytes: &wire, random: fastrand::Rng::with_seed(seed).into() };
            let stream = FrameReader::new(whim, framing)
                .into_stream(move |bytes| acquire_late(bytes, random.u8(1..4)));
            assert!(polled(stream).into_iter().map(Result::unwrap).eq(frames));
        }
    }
}

#[cfg(feature = "futures-core-0_3")]
#[test]
fn a_stream_ends_after_an_error_unless_it_is_skipped() {
    let lines = |framing| {
        let whim = Whim { bytes: b"one\ntoo long\ntwo\n", random: fastrand::Rng::with_seed(1).into() };
        let reader = FrameReader::<_, Delimited, _>::new(whim, framing);
        let lines = polled(reader.into_stream(|bytes| acquire_late(bytes, 1)));
        lines.into_iter().map(|line| line.map_or(b"!".to_vec(), |line| line.to_vec())).collect::<Vec<_>>()
    };
    let framing = Delimited::byte(b'\n', 5);
    assert_eq!(lines(framing), [&b"one"[..], b"!"]);
    assert_eq!(lines(framing.skip_too_long()), [&b"one"[..], b"!", b"two"]);

    // An error while a frame is skipped ends it, too: here a pool that fails again and again.
    let whim = Whim { bytes: &[b'x'; 1000], random: fastrand::Rng::with_seed(1).into() };
    let reader = FrameReader::<_, _, HeapLease>::new(whim, framing.skip_too_long()).chunks_of(8);
    let mut pool = HeapPool::new();
    let mut acquires = 0;
    let refused = polled(reader.into_stream(|bytes| {
        acquires += 1;
        assert!(acquires < 100);
        let exhausted = AcquireError::Exhausted { requested: bytes, available: 0 };
        core::future::ready(if acquires == 1 { pool.acquire(bytes) } else { Err(exhausted) })
    }));
    assert!(
        matches!(refused[..], [Err(FrameError::TooLong { .. }), Err(FrameError::Acquire(_))]),
        "{refused:?}"
    );
}

pub(super) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (client, accepted) =
        tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

/// Every reader has a part of a frame in a chunk, and needs more than is left of the budget. If it
/// kept its chunk, none would get a buffer.
#[tokio::test]
async fn readers_that_wait_for_the_pool_hold_no_chunk() {
    const READERS: usize = 8;
    const CHUNK: usize = 16 << 10;
    const FRAME: usize = 100 << 10;
    let pool = ShardPool::builder().max_bytes(READERS * CHUNK + FRAME / 2).build().unwrap();
    let framing = LengthDelimited::new(FRAME);
    let mut tasks = JoinSet::new();
    for reader in 0..READERS {
        let (mut client, socket) = pair().await;
        tasks.spawn(async move {
            // A part, so that each reader has one before it knows that it needs more.
            let frame = vec![reader as u8; FRAME];
            let mut wire = Vec::new();
            write_frames(&mut wire, &framing, &[frame]).unwrap();
            client.write_all(&wire[..CHUNK / 2]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            client.write_all(&wire[CHUNK / 2..]).await.unwrap();
        });
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut frames = FrameReader::new(socket, framing).chunks_of(CHUNK);
            let frame = frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await.unwrap().unwrap();
            assert!(frame.len() == FRAME && frame.iter().all(|byte| *byte == reader as u8));
            // Not kept while the reader waits for the next chunk.
            drop(frame);
            assert!(frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await.unwrap().is_none());
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(20), tasks.join_all()).await;
    assert!(all.is_ok(), "readers wait for one another's chunks");
}

/// An idle connection holds nothing, and one inside of a frame holds what the table says.
#[tokio::test]
async fn between_frames_nothing_is_held() {
    let pool = ShardPool::builder().max_bytes(64 << 10).build().unwrap();
    let (mut client, socket) = pair().await;
    let framing = LengthDelimited::new(1000);
    let mut frames = FrameReader::new(socket, framing).chunks_of(60 << 10);
    write_frames_async(&mut client, &framing, &["hello", "world"]).await.unwrap();
    for right in ["hello", "world"] {
        let frame = frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await.unwrap().unwrap();
        assert_eq!(frame, *right.as_bytes());
    }
    // All of the budget can be had while the reader waits.
    let waiting = tokio::time::timeout(
        Duration::from_millis(50),
        frames.next_frame_async(|bytes| pool.acquire_async(bytes)),
    );
    assert!(waiting.await.is_err());
    drop(pool.acquire(60 << 10).expect("nothing is held"));
}

/// Fifty clients send 1 MiB each at once under a budget of 8 MiB, in both modes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_frames_under_a_budget() {
    const FRAME: usize = 1 << 20;
    let pool = ShardPool::builder().max_bytes(8 << 20).build().unwrap();
    let framing = LengthDelimited::new(FRAME);
    let mut tasks = JoinSet::new();
    for number in 0..scaled(50).min(50) {
        let (mut client, socket) = pair().await;
        tasks.spawn(async move {
            let frame = Arc::<[u8]>::from(vec![number as u8; FRAME]);
            write_frames_async(&mut client, &framing, &[&frame, &frame]).await.unwrap();
        });
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut frames = FrameReader::new(socket, framing);
            if number % 2 == 0 {
                frames = frames.by_frame();
            }
            let mut count = 0;
            while let Some(frame) = frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await.unwrap()
            {
                assert!(frame.len() == FRAME && frame.iter().all(|byte| *byte == number as u8));
                count += 1;
            }
            assert_eq!(count, 2);
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(60), tasks.join_all()).await;
    assert!(all.is_ok(), "a reader waits for ever");
}

#[tokio::test]
async fn lines_of_a_socket() {
    let (mut client, socket) = pair().await;
    let framing = Delimited::byte(b'\n', 100);
    let sending = async {
        for part in ["one\ntw", "o\nth", "ree"] {
            client.write_all(part.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(client);
    };
    let mut pool = HeapPool::new();
    let receiving = async {
        let mut lines = FrameReader::new(socket, framing);
        let mut received = Vec::new();
        while let Some(line) =
            lines.next_frame_async(|bytes| core::future::ready(pool.acquire(bytes))).await.unwrap()
        {
            received.push(line);
        }
        received
    };
    let ((), received) = tokio::join!(sending, receiving);
    assert!(received.iter().eq([&b"one"[..], b"two", b"three"]));
}

#[tokio::test]
async fn asynchronous_writers_that_take_a_part() {
    struct Part(Vec<u8>, fastrand::Rng);
    impl AsyncWrite for Part {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.1.bool() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let n = self.1.usize(1..=bytes.len());
            self.0.extend_from_slice(&bytes[..n]);
            Poll::Ready(Ok(n))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let framing = LengthDelimited::new(1000);
    let frames: Vec<Vec<u8>> = (0..200).map(|number| vec![number as u8; number]).collect();
    let mut expected = Vec::new();
    write_frames(&mut expected, &framing, &frames).unwrap();
    let mut part = Part(Vec::new(), fastrand::Rng::with_seed(3));
    write_frames_async(&mut part, &framing, &frames).await.unwrap();
    assert!(part.0 == expected);
    part.0.clear();
    let parts = expected.chunks(100).chain([&expected[..0]]);
    let mut slices: Vec<_> = parts.map(IoSlice::new).collect();
    let mut cx = Context::from_waker(Waker::noop());
    // A future that is dropped leaves the slices what it has not written.
    while pin!(write_all_vectored_async(&mut part, &mut slices))
        .poll(&mut cx)
        .map(Result::unwrap)
        .is_pending()
    {
        assert_eq!(part.0.len() + slices.iter().map(|left| left.len()).sum::<usize>(), expected.len());
    }
    assert!(part.0 == expected);
}
