//! Limits, ends, what is copied, and how often the stream is read.

use core::slice;
use core::time::Duration;
use std::io::{self, Read};

use bufworks::frames::{Delimited, FrameError, FrameReader, Framing, LengthDelimited, write_frames};
use bufworks::{AcquireError, HeapLease, HeapPool, HeapView};

/// Notes where each read went.
struct Noting<'a> {
    bytes: &'a [u8],
    reads: Vec<(usize, usize)>,
}

impl<'a> Noting<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, reads: Vec::new() }
    }
}

impl Read for Noting<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reads.push((into.as_ptr().addr(), into.len()));
        self.bytes.read(into)
    }
}

fn next<S: Read, F: Framing>(
    reader: &mut FrameReader<S, F, HeapLease>,
) -> Result<Option<HeapView>, FrameError> {
    reader.next_frame(|bytes| HeapPool::new().acquire(bytes))
}

fn wire(framing: &impl Framing, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = Vec::new();
    write_frames(&mut wire, framing, frames).expect("frames are within the limit");
    wire
}

#[test]
fn one_read_brings_many_frames_without_a_copy() {
    let framing = LengthDelimited::new(100);
    let frames: Vec<Vec<u8>> = (0..1000).map(|number: usize| vec![number as u8; number % 50]).collect();
    let wire = wire(&framing, &frames);
    let mut reader = FrameReader::new(Noting::new(&wire), framing);
    let mut copied = 0;
    for right in &frames {
        let frame = next(&mut reader).unwrap().unwrap();
        assert_eq!(frame, right[..]);
        // The one that the chunk's end cut is copied to the next chunk.
        let (start, len) = *reader.get_ref().reads.last().unwrap();
        let is_in_place = frame.is_empty() || (start..start + len).contains(&frame.as_ptr().addr());
        copied += usize::from(!is_in_place);
    }
    assert!(next(&mut reader).unwrap().is_none());
    // The first has 8 KiB, and each one that is filled makes the next one larger.
    let chunks = 3;
    assert!(
        wire.len() > 24 << 10 && reader.get_ref().reads.len() <= chunks + 2,
        "{:?}",
        reader.get_ref().reads
    );
    assert!(copied <= chunks, "{copied} copies for {chunks} chunks");
}

/// Chunks become larger where more bytes wait, and smaller again.
#[test]
fn chunks_follow_what_comes() {
    let framing = LengthDelimited::new(1 << 20);
    let stream = wire(&framing, &vec![vec![7; 4096]; 1000]);
    let mut reader = FrameReader::new(Noting::new(&stream), framing);
    for _ in 0..1000 {
        assert_eq!(next(&mut reader).unwrap().unwrap(), [7; 4096]);
    }
    assert!(reader.get_ref().reads.len() < stream.len() / (64 << 10) + 8, "{:?}", reader.get_ref().reads);

    /// Gives few bytes at a time from a moment on.
    struct Slow<'a>(Noting<'a>, usize);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = if self.0.bytes.len() > self.1 { into.len() } else { into.len().min(100) };
            self.0.reads.push((0, into.len()));
            self.0.bytes.read(&mut into[..most])
        }
    }
    let stream = wire(&framing, &vec![vec![7; 96]; 5000]);
    let mut reader = FrameReader::new(Slow(Noting::new(&stream), 100_000), framing);
    let mut largest = 0;
    while next(&mut reader).unwrap().is_some() {
        largest = largest.max(reader.get_ref().0.reads.last().unwrap().1);
    }
    assert!(largest > 60 << 10 && reader.get_ref().0.reads.last().unwrap().1 <= 8 << 10, "{largest}");
}

/// A large frame is not read to a large chunk, from which it would be copied.
#[test]
fn large_frames_are_read_to_their_places() {
    let framing = LengthDelimited::new(1 << 20);
    for frame in [64 << 10, 1 << 20] {
        let stream = wire(&framing, &vec![vec![7; frame]; 20]);
        let mut reader = FrameReader::new(Noting::new(&stream), framing);
        for number in 1..=20 {
            let read = next(&mut reader).unwrap().unwrap();
            assert!(read.len() == frame && read.iter().all(|&byte| byte == 7));
            let reads = &reader.get_ref().reads;
            assert_eq!(reads.len(), 2 * number, "{frame}: {reads:?}");
            assert!(reads.last().unwrap().1 >= frame - (8 << 10), "{frame}: {reads:?}");
        }
    }
}

/// A pool that refuses large chunks gets requests for small ones.
#[test]
fn a_chunk_that_is_refused_becomes_smaller() {
    let framing = LengthDelimited::new(100);
    let stream = wire(&framing, &vec![vec![7; 100]; 1000]);
    let mut reader = FrameReader::new(&stream[..], framing);
    let (mut refused, mut frames) = (0, 0);
    let mut acquire = |bytes| {
        if bytes > 8 << 10 {
            refused += 1;
            return Err(bufworks::AcquireError::Exhausted { requested: bytes, available: 8 << 10 });
        }
        HeapPool::new().acquire(bytes)
    };
    while let Some(frame) = reader.next_frame(&mut acquire).unwrap() {
        assert_eq!(frame, [7; 100]);
        frames += 1;
    }
    assert_eq!((frames, refused), (1000, 1));
    let mut reader = FrameReader::<_, _, HeapLease>::new(&stream[..], framing);
    let none = |bytes| Err(bufworks::AcquireError::Exhausted { requested: bytes, available: 0 });
    assert!(matches!(reader.next_frame(none), Err(FrameError::Acquire(_))));
}

#[test]
fn by_frame_reads_each_into_a_buffer_of_its_length() {
    let framing = LengthDelimited::new(10_000);
    let frames = [vec![1; 10_000], vec![], vec![2; 1], vec![3; 500]];
    let wire = wire(&framing, &frames);
    let mut reader = FrameReader::new(Noting::new(&wire), framing).by_frame();
    for right in &frames {
        let mut asked = Vec::new();
        let frame = reader.next_frame(|bytes| {
            asked.push(bytes);
            HeapPool::new().acquire(bytes)
        });
        let frame = frame.unwrap().unwrap();
        assert_eq!((&frame[..], asked), (&right[..], vec![right.len()]));
        if !right.is_empty() {
            assert_eq!(*reader.get_ref().reads.last().unwrap(), (frame.as_ptr().addr(), right.len()));
        }
    }
    assert!(next(&mut reader).unwrap().is_none());
    // Two for each frame with bytes, one for the one without, one for the end.
    assert_eq!(reader.get_ref().reads.len(), 8);
}

/// A frame that no chunk holds is copied once, as far as it has come; the rest is read to its place.
#[test]
fn a_large_frame_gets_a_buffer_of_its_own() {
    let framing = LengthDelimited::new(1 << 20);
    let frames = [vec![1; 10], vec![2; 1 << 20], vec![3; 10]];
    let wire = wire(&framing, &frames);
    let mut reader = FrameReader::new(Noting::new(&wire), framing).chunks_of(4096);
    assert_eq!(next(&mut reader).unwrap().unwrap(), frames[0][..]);
    let large = next(&mut reader).unwrap().unwrap();
    assert!(large == frames[1][..]);
    let here = 4096 - 14 - 4;
    let (start, len) = reader.get_ref().reads[1];
    assert_eq!((start, len), (large.as_ptr().addr() + here, (1 << 20) - here));
    assert_eq!(next(&mut reader).unwrap().unwrap(), frames[2][..]);
    assert!(next(&mut reader).unwrap().is_none());
}

/// A closure that blocks gets the budget that the chunk had.
#[test]
fn while_acquire_blocks_no_chunk_is_held() {
    const FRAME: usize = 100 << 10;
    const CHUNK: usize = 16 << 10;
    let pool = bufworks::shard::ShardPool::builder().max_bytes(FRAME + CHUNK).build().unwrap();
    let framing = LengthDelimited::new(FRAME);
    let stream = wire(&framing, &[vec![7; FRAME]]);
    let mut reader = FrameReader::new(&stream[..], framing).chunks_of(CHUNK);
    let frame = reader.next_frame(|bytes| pool.acquire_timeout(bytes, Duration::from_secs(5)));
    assert_eq!(frame.unwrap().unwrap().len(), FRAME);
}

/// What a reader keeps outside of the pool while it waits for it.
#[test]
fn a_reader_that_waits_keeps_at_most_a_chunk_or_the_limit() {
    fn most_kept<F: Framing + Copy>(framing: F, wire: &[u8]) -> usize {
        let kept = |most: usize| {
            let mut frames = FrameReader::new(wire, framing);
            let refused = frames.next_frame(|bytes| match bytes > most {
                true => Err(AcquireError::Exhausted { requested: bytes, available: most }),
                false => HeapPool::new().acquire(bytes),
            });
            assert!(matches!(refused, Err(FrameError::Acquire(_))));
            frames.into_parts().1.len()
        };
        (13..20).map(|power| kept(1 << power)).max().unwrap_or(0)
    }
    let limit = (1 << 20) - 1;
    let lines = most_kept(Delimited::byte(b'\n', limit), &vec![b'a'; limit]);
    assert!((limit / 2..=limit).contains(&lines), "{lines}");
    let framing = LengthDelimited::new(limit);
    let lengths = most_kept(framing, &wire(&framing, &[vec![2; limit]]));
    assert!(lengths <= 64 << 10, "{lengths}");
}

#[test]
fn a_long_line_is_searched_once() {
    /// Gives a byte for each read, so a search from the front each time would take minutes.
    struct Slow(usize);
    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            into[0] = if self.0 == 1 << 20 { b'\n' } else { b'x' };
            Ok(1)
        }
    }
    let mut reader = FrameReader::new(Slow(0), Delimited::byte(b'\n', 1 << 20));
    assert_eq!(next(&mut reader).unwrap().unwrap().len(), (1 << 20) - 1);
}

#[test]
fn limits() {
    for limit in [0, 1, 7, 8, 9, 8190, 8192] {
        let (right, wrong) = (vec![b'x'; limit], vec![b'x'; limit + 1]);
        let length = LengthDelimited::new(limit);
        let larger = LengthDelimited::new(limit + 1);
        let line = Delimited::sequence(b"\r\n", limit).unwrap();
        let longer = Delimited::sequence(b"\r\n", limit + 1).unwrap();

        let stream = wire(&length, slice::from_ref(&right));
        assert_eq!(next(&mut FrameReader::new(&stream[..], length)).unwrap().unwrap(), right[..]);
        let stream = wire(&larger, slice::from_ref(&wrong));
        for mut reader in
            [FrameReader::new(&stream[..], length), FrameReader::new(&stream[..], length).by_frame()]
        {
            for _ in 0..2 {
                let error = next(&mut reader).unwrap_err();
                assert!(
                    matches!(error, FrameError::TooLong { length, limit: l } if (length, l) == (limit + 1, limit))
                );
            }
        }
        for chunk in [1, 5, 8192] {
            let stream = wire(&line, slice::from_ref(&right));
            let mut reader = FrameReader::new(&stream[..], line).chunks_of(chunk);
            assert_eq!(next(&mut reader).unwrap().unwrap(), right[..]);
            let stream = wire(&longer, slice::from_ref(&wrong));
            let mut reader = FrameReader::new(&stream[..], line).chunks_of(chunk);
            assert!(matches!(next(&mut reader), Err(FrameError::TooLong { .. })), "{limit} {chunk}");
            // One that never ends is found before it is all in memory.
            let mut reader = FrameReader::new(io::repeat(b'x'), line).chunks_of(chunk);
            assert!(matches!(next(&mut reader), Err(FrameError::TooLong { .. })), "{limit} {chunk}");
        }
        let error = write_frames(&mut io::sink(), &length, &[&wrong]).unwrap_err();
        assert!(matches!(error, FrameError::TooLong { .. }));
    }
}

#[test]
fn lengths_that_are_none() {
    let eight = LengthDelimited::new(usize::MAX).length_bytes(8);
    let mut reader = FrameReader::new(&[0xff; 8][..], eight);
    assert!(matches!(next(&mut reader), Err(FrameError::TooLong { .. })));
    let counting = LengthDelimited::new(100).counts_header();
    let mut reader = FrameReader::new(&[0, 0, 0, 3][..], counting);
    assert!(matches!(next(&mut reader), Err(FrameError::TooShort { length: 3, header: 4 })));
    // A header of one byte, which counts itself, has room for 254.
    let one = LengthDelimited::new(1000).length_bytes(1).counts_header();
    assert!(write_frames(&mut io::sink(), &one, &[vec![0; 254]]).is_ok());
    let error = write_frames(&mut io::sink(), &one, &[vec![0; 255]]).unwrap_err();
    assert_eq!(error.to_string(), "a frame of 255 bytes is over the limit of 254");
    // A header of one byte, of which 300 are taken off, has no length, not even 0.
    let none = LengthDelimited::new(100).length_bytes(1).adjustment(-300);
    let mut written = Vec::new();
    let error = write_frames(&mut written, &none, &[""]).unwrap_err();
    assert!(matches!(error, FrameError::TooShort { length: 0, header: 1 }), "{error}");
    assert!(written.is_empty());
}

/// The limit that an error names is one that the frame is over, also where the header is what
/// limits it.
#[test]
fn a_frame_that_is_too_long_is_over_the_limit_that_is_named() {
    let check = |error: FrameError| {
        assert!(matches!(error, FrameError::TooLong { length, limit } if length > limit), "{error}");
    };
    for header in [1, 2] {
        for framing in [LengthDelimited::new(usize::MAX), LengthDelimited::new(usize::MAX).counts_header()] {
            let framing = framing.length_bytes(header);
            let numbers = 1_usize << (8 * header);
            for len in numbers - 10..=numbers {
                if let Err(error) = write_frames(&mut io::sink(), &framing, &[vec![0; len]]) {
                    check(error);
                }
            }
            assert!(write_frames(&mut io::sink(), &framing, &[vec![0; numbers]]).is_err());
        }
    }
    let eight = LengthDelimited::new(usize::MAX).length_bytes(8);
    check(next(&mut FrameReader::new(&[0xff; 8][..], eight)).unwrap_err());
}

#[test]
fn streams_that_end_inside_a_frame() {
    let framing = LengthDelimited::new(100);
    let stream = wire(&framing, &[vec![7; 20]]);
    for end in 1..stream.len() {
        for mut reader in [
            FrameReader::new(&stream[..end], framing),
            FrameReader::new(&stream[..end], framing).by_frame(),
            FrameReader::new(&stream[..end], framing).chunks_of(1),
        ] {
            assert!(matches!(next(&mut reader), Err(FrameError::Truncated)), "at {end}");
            assert!(reader.is_inside_frame());
        }
    }
    let lines = Delimited::sequence(b"\r\n", 100).unwrap();
    let mut reader = FrameReader::new(&b"one\r\ntwo\r"[..], lines);
    assert_eq!(next(&mut reader).unwrap().unwrap(), *b"one");
    assert_eq!(next(&mut reader).unwrap().unwrap(), *b"two\r");
    assert!(next(&mut reader).unwrap().is_none());
    // The limit holds for the last one too, though a delimiter could have followed.
    let short = Delimited::sequence(b"\r\n", 3).unwrap();
    assert!(matches!(
        next(&mut FrameReader::new(&b"four"[..], short)),
        Err(FrameError::TooLong { length: 4, limit: 3 })
    ));
    let mut reader = FrameReader::new(&b"one\r\ntwo\r"[..], lines.must_end());
    assert_eq!(next(&mut reader).unwrap().unwrap(), *b"one");
    assert!(matches!(next(&mut reader), Err(FrameError::Truncated)));
}

/// The rest of a stream goes on in another protocol.
#[test]
fn the_rest_can_be_taken() {
    let framing = LengthDelimited::new(100);
    let mut stream = wire(&framing, &[vec![1; 5], vec![2; 6]]);
    stream.extend([9; 3]);
    let mut reader = FrameReader::new(&stream[..], framing);
    assert_eq!(next(&mut reader).unwrap().unwrap(), [1; 5]);
    assert!(reader.is_inside_frame(), "the second one has come");
    assert_eq!(next(&mut reader).unwrap().unwrap(), [2; 6]);
    assert_eq!(reader.into_parts(), (&[][..], vec![9; 3]));
}
