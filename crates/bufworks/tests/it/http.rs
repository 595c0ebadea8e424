//! `http`: bodies of several parts, and uploads under a limit and a budget.

use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io;

use bufworks::http::{Body, CollectError, collect};
use bufworks::shard::ShardPool;
use bufworks::{AcquireError, HeapPool, SharedBytes};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::runtime::Builder;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

fn pool(max_bytes: usize) -> ShardPool {
    ShardPool::builder().max_bytes(max_bytes).build().unwrap()
}

/// What a server gets from a client: frames as they come. `None` is where no more has come yet.
struct Sent {
    frames: VecDeque<Option<io::Result<Frame<Bytes>>>>,
    announced: SizeHint,
    polls: usize,
}

impl Sent {
    /// Pieces whose length is not announced.
    fn new<const N: usize>(pieces: [usize; N]) -> Self {
        let bytes: Vec<u8> = (0..pieces.iter().sum()).map(|at| at as u8).collect();
        let mut bytes = Bytes::from(bytes);
        let frames = pieces.map(|piece| Some(Ok(Frame::data(bytes.split_to(piece)))));
        Self { frames: frames.into(), announced: SizeHint::default(), polls: 0 }
    }

    fn announced(mut self, bytes: u64) -> Self {
        self.announced = SizeHint::with_exact(bytes);
        self
    }

    fn then(mut self, frame: Option<io::Result<Frame<Bytes>>>) -> Self {
        self.frames.push_back(frame);
        self
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.polls += 1;
        match self.frames.pop_front() {
            Some(Some(frame)) => Poll::Ready(Some(frame)),
            Some(None) => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.announced
    }
}

fn is_pattern(bytes: &[u8], len: usize) -> bool {
    bytes.iter().copied().eq((0..len).map(|at| at as u8))
}

#[test]
fn an_announced_body_takes_one_buffer_of_its_length() {
    let mut asked = Vec::new();
    let acquire = |bytes| {
        asked.push(bytes);
        core::future::ready(HeapPool::new().acquire(bytes))
    };
    let body = Sent::new([1, 0, 4999, 95_000]).announced(100_000);
    let body = body.then(Some(Ok(Frame::trailers(Default::default()))));
    let collected = block_on(collect(body, 100_000, acquire)).unwrap();
    assert!(is_pattern(&collected, 100_000));
    assert_eq!(asked, [100_000]);
}

#[test]
fn other_bodies_grow_up_to_the_limit() {
    let mut asked = Vec::new();
    let acquire = |bytes| {
        asked.push(bytes);
        core::future::ready(HeapPool::new().acquire(bytes))
    };
    let body = Sent::new([10_000, 6_384, 1, 60_000, 13_615]);
    let collected = block_on(collect(body, 90_000, acquire)).unwrap();
    assert!(is_pattern(&collected, 90_000));
    assert_eq!(asked, [16 << 10, 32 << 10, 76_385, 90_000]);
}

#[test]
fn a_body_without_bytes_is_an_empty_buffer() {
    for body in [Sent::new([]), Sent::new([]).announced(0), Sent::new([0, 0])] {
        let pool = pool(1 << 20);
        let collected = block_on(collect(body, 0, |bytes| pool.acquire_async(bytes))).unwrap();
        assert_eq!((collected.len(), pool.stats().in_use), (0, 0));
    }
}

#[test]
fn the_limit_holds_with_and_without_an_announcement() {
    let mut body = Sent::new([5, 5]).announced(10);
    let refused = block_on(collect(&mut body, 9, async |bytes| HeapPool::new().acquire(bytes)));
    assert!(matches!(refused, Err(CollectError::TooLarge { limit: 9 })));
    assert_eq!(body.polls, 0, "it is not read");

    for body in [Sent::new([5, 5]), Sent::new([5, 5]).announced(9)] {
        let pool = pool(1 << 20);
        let refused = block_on(collect(body, 9, |bytes| pool.acquire_async(bytes))).unwrap_err();
        assert_eq!((refused.status_code(), pool.stats().in_use), (413, 0));
        assert_eq!(refused.to_string(), "the body is over the limit of 9 bytes");
    }
    let over_the_pool = collect(Sent::new([2 << 20]), 4 << 20, async |bytes| pool(1 << 20).acquire(bytes));
    assert_eq!(block_on(over_the_pool).unwrap_err().status_code(), 413);
}

#[test]
fn it_waits_for_the_pool_without_reading_on() {
    let pool = pool(1 << 20);
    let held = pool.acquire(900 << 10).unwrap();
    let mut body = Sent::new([1, 299_999]).announced(300_000);
    let mut cx = Context::from_waker(Waker::noop());
    {
        let mut collecting = pin!(collect(&mut body, 1 << 20, |bytes| pool.acquire_async(bytes)));
        assert!(collecting.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pool.stats().in_use, 1, "what is held elsewhere");
        drop(held);
        let Poll::Ready(collected) = collecting.poll(&mut cx) else { panic!("there is room") };
        assert!(is_pattern(&collected.unwrap(), 300_000));
    }
    assert_eq!(body.polls, 3);
}

/// Otherwise tasks that each hold half would wait for each other.
#[test]
fn it_does_not_wait_for_more_while_it_holds_some() {
    let pool = pool(1 << 20);
    let _held = pool.acquire(990 << 10).unwrap();
    let body = Sent::new([16 << 10, 1]);
    let refused = block_on(collect(body, 1 << 20, |bytes| pool.acquire_async(bytes))).unwrap_err();
    assert!(matches!(refused, CollectError::Acquire(AcquireError::Exhausted { requested: 32_768, .. })));
    assert_eq!((refused.status_code(), pool.stats().in_use), (503, 1));
}

/// Then a body whose length is not announced waits, too.
#[test]
fn a_first_buffer_of_the_limit_is_the_only_one() {
    let pool = pool(1 << 20);
    let held = pool.acquire(900 << 10).unwrap();
    let body = Sent::new([1, 199_999, 100_000]);
    let mut cx = Context::from_waker(Waker::noop());
    let mut collecting = pin!(collect(body, 300_000, |_| pool.acquire_async(300_000)));
    assert!(collecting.as_mut().poll(&mut cx).is_pending());
    drop(held);
    let Poll::Ready(collected) = collecting.poll(&mut cx) else { panic!("there is room") };
    assert!(is_pattern(&collected.unwrap(), 300_000));
}

/// A future of the pool lets other tasks run now and then, which is no refusal.
#[test]
fn giving_way_is_no_refusal() {
    let pool = pool(64 << 20);
    block_on(async {
        for _ in 0..300 {
            let body = Sent::new([16 << 10, 1]);
            let collected = collect(body, 1 << 20, |bytes| pool.acquire_async(bytes)).await;
            assert!(is_pattern(&collected.unwrap(), (16 << 10) + 1));
            // So that it is the second request of a body, too, which gives way.
            pool.acquire_async(1).await.unwrap();
        }
    });
}

#[test]
fn a_dropped_future_and_a_failed_body_release_everything() {
    let pool = pool(1 << 20);
    let mut cx = Context::from_waker(Waker::noop());
    {
        let body = Sent::new([100]).announced(1000).then(None);
        let mut collecting = pin!(collect(body, 1000, |bytes| pool.acquire_async(bytes)));
        assert!(collecting.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pool.stats().in_use, 1);
    }
    assert_eq!(pool.stats().in_use, 0);
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    let body = Sent::new([100]).announced(1000).then(Some(Err(reset)));
    let failed = block_on(collect(body, 1000, |bytes| pool.acquire_async(bytes))).unwrap_err();
    assert_eq!((failed.status_code(), pool.stats().in_use), (400, 0));
    assert!(matches!(failed, CollectError::Body(error) if error.kind() == io::ErrorKind::ConnectionReset));
}

#[test]
fn a_pool_that_gives_too_little_is_an_error() {
    let small = async |_| HeapPool::new().acquire(10);
    let refused = block_on(collect(Sent::new([11]), 100, small)).unwrap_err();
    assert!(matches!(
        refused,
        CollectError::Acquire(AcquireError::Exhausted { requested: 11, available: 10 })
    ));
}

#[test]
fn buffers_that_are_not_empty_are_cleared() {
    let used = async |bytes: usize| {
        let mut buf = HeapPool::new().acquire(bytes.max(5))?;
        buf.extend_from_slice(b"stale").expect("room for it");
        Ok(buf)
    };
    for pieces in [[0, 0, 0], [10, 0, 0], [1000, 20_000, 50_000]] {
        let collected = block_on(collect(Sent::new(pieces), 1 << 20, used)).unwrap();
        assert!(is_pattern(&collected, pieces.iter().sum()), "{} bytes", collected.len());
    }
}

#[test]
fn parts_are_sent_without_a_copy_and_released_one_by_one() {
    let pool = pool(1 << 20);
    let mut message = pool.acquire(11).unwrap();
    message.extend_from_slice(b"header body").unwrap();
    let mut rest = SharedBytes::from(message);
    let header = rest.split_to(7);
    let place = rest.as_ptr();
    let mut body = Body::from(vec![header, SharedBytes::new(), rest]);
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(11), false));
    let mut next = || block_on(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)));
    assert_eq!(next().unwrap().unwrap().into_data().unwrap(), "header ");
    let last = next().unwrap().unwrap().into_data().unwrap();
    assert_eq!((&last[..], last.as_ptr()), (&b"body"[..], place));
    assert!(next().is_none() && body.is_end_stream());
    assert_eq!((body.size_hint().exact(), pool.stats().in_use), (Some(0), 1));
    drop(last);
    assert_eq!(pool.stats().in_use, 0);
}

#[test]
fn bodies_of_one_part() {
    let buf = || {
        let mut buf = HeapPool::new().acquire(4).unwrap();
        buf.extend_from_slice(b"four").unwrap();
        buf
    };
    for body in [Body::from(buf()), buf().freeze().into(), SharedBytes::from(buf()).into()] {
        let collected = block_on(collect(body, 4, async |bytes| HeapPool::new().acquire(bytes)));
        assert_eq!(collected.unwrap(), *b"four");
    }
    assert!(Body::from(HeapPool::new().acquire(4).unwrap()).is_end_stream());
}
