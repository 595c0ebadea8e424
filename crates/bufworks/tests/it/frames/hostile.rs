//! T21 to T23: `acquire` and streams that lie, refuse and panic. The reader goes on.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bufworks::frames::{Affix, Delimited, FrameError, FrameReader, Framing, LengthDelimited, Parsed};
use bufworks::{AcquireError, HeapBuf, HeapPool};

const STREAM: &[u8] = b"\0\0\0\x05first\0\0\0\x06second";

fn honest(bytes: usize) -> Result<HeapBuf, AcquireError> {
    HeapPool::new().acquire(bytes)
}

/// Answers of `acquire` before the right one, each with what the reader has to say.
fn wrong_answers() -> [fn(usize) -> Result<HeapBuf, AcquireError>; 4] {
    [
        |bytes| honest(bytes.saturating_sub(1)),
        |bytes| {
            let mut buf = honest(bytes + 1)?;
            buf.extend_from_slice(b"x").expect("room for it");
            Ok(buf)
        },
        |bytes| Err(AcquireError::Exhausted { requested: bytes, available: 0 }),
        |_bytes| panic!("no buffer today"),
    ]
}

#[test]
fn t21_acquire_that_lies_refuses_and_panics() {
    for by_frame in [false, true] {
        let mut reader = FrameReader::new(STREAM, LengthDelimited::new(100)).chunks_of(7);
        if by_frame {
            reader = reader.by_frame();
        }
        for right in [&b"first"[..], b"second"] {
            for (number, wrong) in wrong_answers().into_iter().enumerate() {
                let answer = catch_unwind(AssertUnwindSafe(|| reader.next_frame(wrong)));
                match (number, answer) {
                    (0 | 1, Ok(Err(FrameError::NoRoom { .. })))
                    | (2, Ok(Err(FrameError::Acquire(_))))
                    | (3, Err(_)) => {}
                    (number, answer) => panic!("answer {number} is {answer:?}"),
                }
            }
            // By frame, in a buffer that is larger than was asked for.
            let more = if by_frame { 1000 } else { 0 };
            let frame = reader.next_frame(|bytes| honest(bytes + more)).unwrap();
            assert_eq!(frame.unwrap(), *right);
        }
        assert!(reader.next_frame(honest).unwrap().is_none());
    }
}

/// A frame without bytes asks for a buffer of none, which must be empty as any other.
#[test]
fn t21_a_buffer_for_nothing_that_is_not_empty() {
    let mut reader = FrameReader::new(&[0; 4][..], LengthDelimited::new(100)).by_frame();
    let lying = |bytes: usize| {
        let mut buf = honest(bytes + 1)?;
        buf.extend_from_slice(b"x").expect("room for it");
        Ok(buf)
    };
    let refused = reader.next_frame(lying).unwrap_err();
    assert!(matches!(refused, FrameError::NoRoom { requested: 0, available: 0 }), "{refused}");
    assert!(refused.to_string().ends_with("is not empty"), "{refused}");
    assert_eq!(reader.next_frame(honest).unwrap().unwrap(), *b"");
}

/// What is asked for amid a frame is refused: the part that has come stays.
#[test]
fn a_refusal_amid_a_frame_loses_nothing() {
    let line = vec![b'x'; 1000];
    let mut reader = FrameReader::new(&line[..], Delimited::byte(b'\n', 2000)).chunks_of(10);
    let mut refused = 0;
    let frame = loop {
        let answer = reader.next_frame(|bytes| {
            refused += 1;
            if refused % 3 == 0 { honest(bytes) } else { Err(AcquireError::OutOfMemory { requested: bytes }) }
        });
        match answer {
            Ok(frame) => break frame,
            Err(FrameError::Acquire(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(frame.unwrap(), line[..]);
    assert!(refused > 15);
}

#[test]
fn t21_streams_that_claim_too_much_or_panic() {
    struct Hostile<'a>(&'a [u8], usize);
    impl Read for Hostile<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            match self.1 % 5 {
                1 => Ok(into.len() + 1),
                2 => Ok(usize::MAX),
                3 => panic!("no bytes today"),
                4 => Err(ErrorKind::ConnectionReset.into()),
                _ => self.0.read(&mut into[..1]),
            }
        }
    }
    for by_frame in [false, true] {
        let mut reader = FrameReader::new(Hostile(STREAM, 0), LengthDelimited::new(100));
        if by_frame {
            reader = reader.by_frame();
        }
        let mut frames = Vec::new();
        // Each byte takes five calls.
        for _ in 0..10 * STREAM.len() {
            match catch_unwind(AssertUnwindSafe(|| reader.next_frame(honest))) {
                Ok(Ok(Some(frame))) => frames.push(frame),
                Ok(Ok(None)) => break,
                Ok(Err(FrameError::Io(error))) => {
                    assert!(matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::ConnectionReset));
                }
                Ok(Err(error)) => panic!("{error}"),
                Err(_panic) => {}
            }
        }
        assert!(frames.iter().eq([&b"first"[..], b"second"]));
    }
}

/// Frames of one byte, or without an end, whose header is said to have so many.
struct Claims {
    header: usize,
    has_end: bool,
}

impl Framing for Claims {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        let has_end = self.has_end && !stream.is_empty();
        Ok(if has_end { Parsed::Frame { payload: 0..1, total: 1 } } else { Parsed::Incomplete })
    }

    fn max_bytes(&self) -> usize {
        usize::MAX
    }

    fn around(&self, _frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        Ok([Affix::NONE; 2])
    }

    fn header_bytes(&self) -> usize {
        self.header
    }
}

#[test]
fn t21_headers_that_are_longer_than_their_frames() {
    let mut reader = FrameReader::new(STREAM, Claims { header: 4, has_end: true }).by_frame();
    for _ in 0..2 {
        // In a buffer with room for more than the frame, too.
        let refused = reader.next_frame(|bytes| honest(bytes + 100)).unwrap_err();
        assert!(matches!(refused, FrameError::Contradiction), "{refused}");
    }
    for header in [isize::MAX as usize, usize::MAX] {
        // What is claimed is not allocated.
        let mut reader = FrameReader::new(STREAM, Claims { header, has_end: false }).by_frame();
        assert!(matches!(reader.next_frame(honest), Err(FrameError::Truncated)));
        assert_eq!(reader.into_parts().1, STREAM);
        // A stream that fails amid it has its chunk let go.
        let fails = STREAM.chain(Fails);
        let mut reader = FrameReader::new(fails, Claims { header, has_end: false });
        assert!(matches!(reader.next_frame(honest), Err(FrameError::Io(_))));
        assert_eq!(reader.into_parts().1, STREAM);
    }
}

type Next = fn(&[u8]) -> ControlFlow<usize, usize>;

/// Frames that are all too long, and what it says where the next one is.
struct Skips {
    max: usize,
    next: Next,
    asked: Cell<u32>,
}

impl Framing for Skips {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        Err(FrameError::TooLong { length: stream.len(), limit: 1 })
    }

    fn max_bytes(&self) -> usize {
        self.max
    }

    fn around(&self, _frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        Ok([Affix::NONE; 2])
    }

    fn header_bytes(&self) -> usize {
        4
    }

    fn find_next(&self, stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
        self.asked.set(self.asked.get() + 1);
        assert!(self.asked.get() < 100_000, "it ends");
        Some((self.next)(stream))
    }
}

/// What cannot be skipped as a framing says is an error: nobody waits for it for ever.
#[test]
fn t21_skipping_that_gets_nowhere() {
    let stream = vec![7; 100_000];
    let contradicts = |answer: Result<(), FrameError>| matches!(answer, Err(FrameError::Contradiction));
    let wrong: [Next; 3] = [
        |_stream| ControlFlow::Continue(0),
        |stream| ControlFlow::Continue(stream.len() + 1),
        |_stream| ControlFlow::Break(usize::MAX),
    ];
    for (max, by_frame) in [(0, false), (64, false), (10_000, false), (0, true), (10_000, true)] {
        let reads = |next| {
            let skips = Skips { max, next, asked: Cell::new(0) };
            let reader = FrameReader::new(&stream[..], skips);
            let mut reader = if by_frame { reader.by_frame() } else { reader };
            assert!(matches!(reader.next_frame(honest), Err(FrameError::TooLong { .. })));
            [(); 2].map(|()| reader.next_frame(honest).map(drop))
        };
        for next in wrong {
            let answers = reads(next);
            assert!(answers.into_iter().all(contradicts), "{max} {by_frame}");
            #[cfg(feature = "tokio-util-0_7")]
            {
                use tokio_util::codec::Decoder as _;

                let skips = Skips { max, next, asked: Cell::new(0) };
                let mut codec = bufworks::frames::PoolCodec::new(HeapPool::new(), skips);
                let mut all = bytes::BytesMut::from(&stream[..]);
                let answers = [(); 2].map(|()| codec.decode_eof(&mut all).map(drop));
                assert!(answers.into_iter().all(contradicts), "{max}");
            }
        }
        let [answer, _] = reads(|stream| ControlFlow::Continue(stream.len()));
        assert!(matches!(answer, Err(FrameError::Truncated)), "{max} {by_frame}: {answer:?}");
    }
}

/// By frame, a chunk of which nothing is left is not acquired again and again.
#[test]
fn t21_a_header_after_a_frame_that_is_skipped() {
    struct First(Cell<bool>);
    impl Framing for First {
        fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
            if stream.len() == 10 && self.0.replace(false) {
                return Err(FrameError::TooLong { length: 10, limit: 9 });
            }
            // With a byte behind, so that it comes in a chunk.
            let first = Parsed::Frame { payload: 0..9, total: 10 };
            Ok(if self.0.get() { first } else { Parsed::Incomplete })
        }

        fn max_bytes(&self) -> usize {
            1000
        }

        fn around(&self, _frame: &[u8]) -> Result<[Affix; 2], FrameError> {
            Ok([Affix::NONE; 2])
        }

        fn header_bytes(&self) -> usize {
            1
        }

        fn find_next(&self, stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
            Some(ControlFlow::Break(stream.len()))
        }
    }
    let mut acquired = 0;
    let mut acquire = |bytes| {
        acquired += 1;
        assert!(acquired < 100, "it ends");
        honest(bytes)
    };
    let mut reader = FrameReader::new(&[7; 100][..], First(Cell::new(true))).by_frame();
    assert!(matches!(reader.next_frame(&mut acquire), Err(FrameError::TooLong { .. })));
    assert!(matches!(reader.next_frame(&mut acquire), Err(FrameError::Truncated)));
}

struct Fails;

impl Read for Fails {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}
