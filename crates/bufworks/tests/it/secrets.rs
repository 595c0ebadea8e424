//! What a pool that wipes leaves in the process's memory, whichever way its bytes went (T35).

use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, IoSlice, Read};

use allocator_api2::vec::Vec as VecIn;
use bufworks::any::{AnyBuf, AnyBuilder, AnyPool};
use bufworks::bufcore::allocator::PoolAllocator;
use bufworks::frames::{
    Delimited, FrameReader, LengthDelimited, write_all_vectored_async, write_frames, write_frames_async,
};
use bufworks::net::{ReadReady, read_exact_waiting, read_ready};
use bufworks::{AcquireError, SharedBytes};
use bytes::{Buf as _, BufMut as _, Bytes};
use testkit::secret;
use tokio::io::{AsyncRead, ReadBuf};

const FRAME: usize = 3000;
const FRAMING: LengthDelimited = LengthDelimited::new(4000);
const TOTAL: usize = 4 + FRAME;

/// Gives frames of secret bytes, without memory of its own: up to `most` bytes at once, if it is
/// ready. As a socket it is ready every other time.
struct Secrets {
    at: usize,
    most: usize,
    is_ready: bool,
}

impl Secrets {
    fn of(most: usize) -> Self {
        Self { at: 0, most, is_ready: true }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.is_ready ^= true;
        cx.waker().wake_by_ref();
        if self.is_ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Read for Secrets {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let header = (FRAME as u32).to_be_bytes();
        let n = into.len().min(self.most);
        let mut rest = &mut into[..n];
        while !rest.is_empty() {
            let at = self.at % TOTAL;
            let end = if at < header.len() { header.len() } else { TOTAL };
            let (here, behind) = rest.split_at_mut(rest.len().min(end - at));
            match header.get(at..at + here.len()) {
                Some(part) => here.copy_from_slice(part),
                None => secret::write_from(at - header.len(), here),
            }
            self.at += here.len();
            rest = behind;
        }
        Ok(n)
    }
}

impl AsyncRead for Secrets {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx).map(|()| {
            let n = self.read(into.initialize_unfilled())?;
            into.advance(n);
            Ok(())
        })
    }
}

impl ReadReady for Secrets {
    async fn readable(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Polls up to `polls` times, and drops the future.
fn polled<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    (0..polls).find_map(|_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    polled(100_000, future).expect("it is woken each time")
}

/// A buffer that is there after some polls.
async fn late(pool: &RefCell<&mut AnyPool>, bytes: usize) -> Result<AnyBuf, AcquireError> {
    let mut polls = 2;
    poll_fn(|_| {
        polls -= 1;
        if polls == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pool.borrow_mut().acquire(bytes)
}

fn secrets(pool: &mut AnyPool) -> AnyBuf {
    let mut buf = pool.acquire(FRAME).unwrap();
    secret::write(&mut buf.spare_mut()[..FRAME]);
    buf.commit(FRAME);
    buf
}

type Way = (&'static str, fn(&mut AnyPool));

/// What a program does with the buffers of a pool, each copying no byte to memory of its own.
const WAYS: [Way; 8] = [
    ("a reader of frames", |pool| {
        for chunk in [1000, 4096, 8192] {
            let mut reader = FrameReader::new(Secrets::of(usize::MAX), FRAMING).chunks_of(chunk);
            for _ in 0..20 {
                let frame = reader.next_frame(|bytes| pool.acquire(bytes)).unwrap().unwrap();
                assert!(frame.len() == FRAME && secret::is_in(&frame));
            }
            let _ = reader.next_frame(|bytes| Err(AcquireError::OutOfMemory { requested: bytes }));
        }
    }),
    ("a reader by frame, in small parts", |pool| {
        for most in [1, 33, 700] {
            let mut reader = FrameReader::new(Secrets::of(most), FRAMING).by_frame();
            assert!(secret::is_in(&reader.next_frame(|bytes| pool.acquire(bytes)).unwrap().unwrap()));
        }
    }),
    ("a reader that fails amid a frame", |pool| {
        // Ends in a frame, or in one that no limit allows.
        for (most, limit) in [(50, 4000), (1000, 4000), (1000, 1000)] {
            let mut stream = Secrets::of(most).take(2000);
            stream.get_mut().at = 4;
            let reader = FrameReader::new(stream, Delimited::sequence(b"\0\0\0\0", limit).unwrap());
            let _ = reader.chunks_of(64).next_frame(|bytes| pool.acquire(bytes)).map(drop);
        }
    }),
    ("asynchronous readers, also dropped in between", |pool| {
        let pool = RefCell::new(pool);
        for (chunk, most) in [(0, 700), (64, 33), (1000, usize::MAX), (4096, 1500), (8192, 9000)] {
            for polls in [1, 2, 3, 7, 200] {
                let mut reader = FrameReader::new(Secrets::of(most), FRAMING).chunks_of(chunk);
                if chunk == 0 {
                    reader = reader.by_frame();
                }
                for _ in 0..20 {
                    if let Some(frame) = polled(polls, reader.next_frame_async(|bytes| late(&pool, bytes))) {
                        assert!(secret::is_in(&frame.unwrap().unwrap()));
                    }
                }
            }
        }
    }),
    ("reads of sockets", |pool| {
        let pool = RefCell::new(pool);
        let mut stream = Secrets::of(1000);
        for _ in 0..5 {
            assert!(at_once(read_ready(&mut stream, || pool.borrow_mut().acquire(2000))).unwrap().is_some());
            assert!(at_once(read_exact_waiting(&mut stream, FRAME, || late(&pool, FRAME))).is_ok());
            assert!(polled(4, read_exact_waiting(&mut stream, FRAME, || late(&pool, FRAME))).is_none());
        }
    }),
    ("writers of frames", |pool| {
        let mut frames = [secrets(pool), secrets(pool), secrets(pool)];
        // Few bytes, which are copied.
        frames[1].truncate(500);
        write_frames(&mut io::sink(), &FRAMING, &frames).unwrap();
        at_once(write_frames_async(&mut tokio::io::sink(), &FRAMING, &frames)).unwrap();
        let mut slices = frames.each_ref().map(|frame| IoSlice::new(frame));
        at_once(write_all_vectored_async(&mut tokio::io::sink(), &mut slices)).unwrap();
        let refused = write_frames(&mut io::sink(), &LengthDelimited::new(10), &frames);
        assert!(!format!("{refused:?}").is_empty());
    }),
    ("the crate `bytes`", |pool| {
        let mut view = secrets(pool).freeze();
        let (front, whole) = (view.copy_to_bytes(1000), Bytes::from(view.clone()));
        let shared = Bytes::from_owner(SharedBytes::from(view));
        let part = shared.slice(5..900);
        std::thread::spawn(|| drop((front, part))).join().unwrap();
        drop((shared, whole));
        let mut read = secrets(pool);
        let mut written = pool.acquire(FRAME).unwrap();
        read.copy_to_slice(&mut written.spare_mut()[..100]);
        written.put((&mut read).take(1000));
        written.put(Bytes::from(read));
        drop(Bytes::from(written));
    }),
    ("collections", |pool| {
        let allocator = PoolAllocator::new(RefCell::new(pool));
        let mut vec = VecIn::new_in(&allocator);
        for len in [100, 1000, 3000, 20_000] {
            vec.resize(len, 0);
            secret::write(&mut vec);
        }
        assert!(secret::bytes_in_memory() > 0, "it is there while it is in use");
        vec.truncate(1500);
        vec.shrink_to_fit();
        drop(vec.into_boxed_slice());
    }),
];

#[test]
fn t35_no_secret_is_left_in_memory() {
    let body = || {
        for strategy in ["heap:", "slot:capacity=1MiB,slots=64,", "ring:capacity=1MiB,", "bump:", "shard:"] {
            let builder: AnyBuilder = format!("{strategy}wipe=true").parse().unwrap();
            for (way, go) in WAYS {
                let mut pool = builder.build().unwrap();
                go(&mut pool);
                // In the memory that the pool still has neither.
                assert_eq!(secret::bytes_in_memory(), 0, "secret bytes of {strategy} are left after {way}");
            }
        }
        // A pool that does not wipe has them in its region, which is kept. The blocks of collections
        // are zeroed by every pool.
        let builder: AnyBuilder = "ring:capacity=1MiB".parse().unwrap();
        let pools = WAYS[..WAYS.len() - 1].iter().map(|(way, go)| {
            let mut pool = builder.build().unwrap();
            let before = secret::bytes_in_memory();
            go(&mut pool);
            assert!(secret::bytes_in_memory() > before, "the search finds nothing after {way}");
            pool
        });
        drop(pools.collect::<Vec<_>>());
    };
    let name = "t35_no_secret_is_left_in_memory";
    testkit::process::alone(module_path!(), name, Duration::from_secs(120), body);
}
