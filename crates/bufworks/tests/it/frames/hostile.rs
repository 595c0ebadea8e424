//! T21 to T23: `acquire` and streams that lie, refuse and panic. The reader goes on.

use std::io::{self, ErrorKind, Read};
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

struct Fails;

impl Read for Fails {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}
