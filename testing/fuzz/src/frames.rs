//! Frames out of arbitrary bytes: a reader whose stream gives parts and errors, and whose buffers are refused, too small or not empty,
//! against a splitter that has all bytes at once. Frames that were received are written again, and have to be the same bytes.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};

use bufcore::{AcquireError, Buf, HeapLease, HeapPool};
use bufworks::frames::{Delimited, FrameError, FrameReader, Framing, LengthDelimited, write_frames};
use testkit::bytes::Bytes;

/// The most bytes of a frame.
const LIMIT: usize = 300;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let choice = bytes.byte();
    let width = 1 + bytes.below(8);
    let is_by_frame = bytes.below(3) == 0;
    let chunk = bytes.pick([1, 2, 9, 64, 1000]);
    // The rest is both the program and what comes.
    let wire = bytes.rest();
    let program = RefCell::new(bytes);
    let stream = Parts { bytes: wire, program: &program };
    if choice & 1 == 0 {
        let (is_little, counts) = (choice & 2 != 0, choice & 4 != 0);
        let mut framing = LengthDelimited::new(LIMIT).length_bytes(width);
        framing = if is_little { framing.little_endian() } else { framing };
        framing = if counts { framing.counts_header() } else { framing };
        let has_more = choice & 16 != 0;
        let header = Header { offset: 0, width, behind: 0, is_little, counts };
        let more =
            Header { offset: usize::from(choice >> 5 & 3), behind: usize::from(choice >> 7) * 2, ..header };
        let header = if has_more { more } else { header };
        framing = if has_more { framing.offset(header.offset).skip(header.skip()) } else { framing };
        let reader = FrameReader::new(stream, framing).chunks_of(chunk);
        let reader = if is_by_frame { reader.by_frame() } else { reader };
        // Bytes that are dropped are written as zeroes.
        check(reader, &framing, |wire| by_length(wire, header), wire, header.skip() == width);
    } else {
        let delimiter = [b"\n".as_slice(), b"\r\n", b"aa", b"abab"][usize::from(choice >> 1 & 3)];
        let must_end = choice & 8 != 0;
        let framing = Delimited::sequence(delimiter, LIMIT).expect("one to four bytes");
        let framing = if must_end { framing.must_end() } else { framing };
        let skips = choice & 16 != 0;
        let framing = if skips { framing.skip_too_long() } else { framing };
        let reader = FrameReader::new(stream, framing).chunks_of(chunk);
        check(reader, &framing, |wire| by_delimiter(wire, delimiter, must_end, skips), wire, !skips);
    }
}

/// How a stream of frames ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Between,
    Truncated,
    Wrong,
}

#[derive(Clone, Copy)]
struct Header {
    offset: usize,
    width: usize,
    behind: usize,
    is_little: bool,
    counts: bool,
}

impl Header {
    fn skip(self) -> usize {
        self.offset + self.width + self.behind
    }
}

fn by_length(mut wire: &[u8], header: Header) -> (Vec<&[u8]>, End) {
    let Header { offset, width, is_little, counts, .. } = header;
    let mut found = Vec::new();
    loop {
        if wire.is_empty() {
            return (found, End::Between);
        }
        let Some((dropped, rest)) = wire.split_at_checked(header.skip()) else {
            return (found, End::Truncated);
        };
        let mut number = [0; 16];
        number[..width].copy_from_slice(&dropped[offset..offset + width]);
        if !is_little {
            number[..width].reverse();
        }
        let mut length = u128::from_le_bytes(number);
        if counts {
            let header = (offset + width) as u128;
            let Some(without) = length.checked_sub(header) else { return (found, End::Wrong) };
            length = without;
        }
        if length > LIMIT as u128 {
            return (found, End::Wrong);
        }
        let Some((frame, rest)) = rest.split_at_checked(length as usize) else {
            return (found, End::Truncated);
        };
        found.push(frame);
        wire = rest;
    }
}

fn by_delimiter<'a>(
    mut wire: &'a [u8],
    delimiter: &[u8],
    must_end: bool,
    skips: bool,
) -> (Vec<&'a [u8]>, End) {
    let mut found = Vec::new();
    loop {
        match wire.windows(delimiter.len()).position(|bytes| bytes == delimiter) {
            Some(at) if at <= LIMIT => {
                found.push(&wire[..at]);
                wire = &wire[at + delimiter.len()..];
            }
            Some(at) if skips => wire = &wire[at + delimiter.len()..],
            Some(_) => return (found, End::Wrong),
            None if skips && wire.len() >= LIMIT + delimiter.len() => return (found, End::Between),
            None if skips && !must_end && wire.len() > LIMIT => return (found, End::Between),
            // A delimiter could still come behind so many.
            None if wire.len() >= LIMIT + delimiter.len() => return (found, End::Wrong),
            None if wire.is_empty() => return (found, End::Between),
            None if must_end => return (found, End::Truncated),
            None if wire.len() > LIMIT => return (found, End::Wrong),
            None => {
                found.push(wire);
                return (found, End::Between);
            }
        }
    }
}

/// Gives parts, and errors in between.
struct Parts<'a, 'p> {
    bytes: &'a [u8],
    program: &'p RefCell<Bytes<'a>>,
}

impl Read for Parts<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(!into.is_empty(), "a read without room");
        let mut program = self.program.borrow_mut();
        match program.below(16) {
            1 => return Err(ErrorKind::Interrupted.into()),
            2 => return Err(ErrorKind::WouldBlock.into()),
            3 => return Ok(into.len() + 1),
            _ => {}
        }
        let most = into.len().min(1 + program.below(40));
        self.bytes.read(&mut into[..most])
    }
}

fn check<F: Framing>(
    mut reader: FrameReader<Parts<'_, '_>, F, HeapLease>,
    framing: &F,
    split: impl Fn(&[u8]) -> (Vec<&[u8]>, End),
    wire: &[u8],
    is_exact: bool,
) {
    let (wanted, end) = split(wire);
    let mut found = Vec::new();
    let program = reader.get_ref().program;
    let ended = loop {
        match reader.next_frame(|bytes| supplied(bytes, &mut program.borrow_mut())) {
            Ok(Some(frame)) => found.push(frame),
            Ok(None) => break End::Between,
            Err(FrameError::Acquire(_) | FrameError::NoRoom { .. }) => {}
            Err(FrameError::Io(error)) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::InvalidData), "{error}");
            }
            Err(FrameError::Truncated) => break End::Truncated,
            Err(FrameError::TooLong { .. }) if framing.find_next(&[]).is_some() => {}
            Err(FrameError::TooLong { .. } | FrameError::TooShort { .. }) => break End::Wrong,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(ended, end);
    assert!(found.iter().map(|frame| &frame[..]).eq(wanted.iter().copied()));
    assert_eq!(reader.is_inside_frame(), ended != End::Between);
    if ended == End::Between {
        let mut again = Vec::new();
        match write_frames(&mut again, framing, &found) {
            // The last one may have had no end.
            Ok(()) => {
                assert!(again.starts_with(wire) || !is_exact);
                assert_eq!(split(&again).0, wanted);
            }
            // Then it may end as a delimiter begins.
            Err(FrameError::HasDelimiter { .. }) if !is_exact => {}
            Err(FrameError::HasDelimiter { .. }) => {
                assert_eq!(found.last().map(|frame| &frame[..]), wire.strip_prefix(&again[..]));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A buffer of that number of bytes, or of fewer, or none, or one that is not empty.
fn supplied(bytes: usize, program: &mut Bytes<'_>) -> Result<Buf<HeapLease>, AcquireError> {
    let mut pool = HeapPool::new();
    match program.below(8) {
        1 => Err(AcquireError::OutOfMemory { requested: bytes }),
        2 => pool.acquire(bytes.saturating_sub(1)),
        3 => {
            let mut buf = pool.acquire(bytes + 7)?;
            buf.resize(5, 0xFF).expect("there is room");
            Ok(buf)
        }
        _ => pool.acquire(bytes),
    }
}
