//! Frames with a length of a fixed number of bytes in front.

use core::ops::Range;

use super::{Affix, Framing, Parsed};
use crate::frames::FrameError;

/// Bytes of the longest length.
const MOST_BYTES: usize = 8;

/// Frames with their length in front.
///
/// By default the length has four bytes, the most significant one first, and does not count itself.
///
/// ```
/// use bufworks::frames::{LengthDelimited, write_frames};
///
/// let mut wire = Vec::new();
/// write_frames(&mut wire, &LengthDelimited::new(100), &["frame"])?;
/// assert_eq!(wire, b"\0\0\0\x05frame");
///
/// let framing = LengthDelimited::new(100).length_bytes(2).little_endian().counts_header();
/// wire.clear();
/// write_frames(&mut wire, &framing, &["frame"])?;
/// assert_eq!(wire, b"\x07\0frame");
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
///
/// # Headers with more in them
///
/// As in tokio-util's `LengthDelimitedCodec`, whose parameters correspond to these:
///
/// ```text
///  | offset bytes | length | rest of the header | bytes of the frame | next frame
///  |<----------------- skip ------------------->|<- length + adjustment ->|
/// ```
///
/// A reader drops the first [`skip`](Self::skip) bytes, and returns as many as the length says,
/// [adjusted](Self::adjustment). A writer takes the same bytes that a reader returns. It writes
/// `skip` bytes before them: the length in its position, and zeros.
///
/// ```
/// use bufworks::HeapPool;
/// use bufworks::frames::{FrameReader, LengthDelimited, write_frames};
///
/// // A type, a length that counts the payload alone, and flags: all are kept with the payload.
/// let framing = LengthDelimited::new(100).offset(1).length_bytes(2).skip(0).adjustment(4);
/// let wire = b"T\0\x05Fhello";
/// let mut pool = HeapPool::new();
/// let frame = FrameReader::new(&wire[..], framing).next_frame(|bytes| pool.acquire(bytes))?.unwrap();
/// assert_eq!(frame, *wire);
/// let mut sent_on = Vec::new();
/// write_frames(&mut sent_on, &framing, &[frame])?;
/// assert_eq!(sent_on, wire);
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LengthDelimited {
    limit: usize,
    length_bytes: u8,
    offset: u8,
    /// The header's own bytes unless set.
    skip: Option<u8>,
    adjustment: isize,
    is_little_endian: bool,
    counts_header: bool,
}

impl LengthDelimited {
    /// Makes a framing for frames of up to `limit` bytes, without the skipped ones.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            length_bytes: 4,
            offset: 0,
            skip: None,
            adjustment: 0,
            is_little_endian: false,
            counts_header: false,
        }
    }

    /// Sets the number of bytes of the length.
    ///
    /// # Panics
    ///
    /// Panics unless it is 1 to 8.
    #[must_use]
    #[track_caller]
    pub const fn length_bytes(mut self, bytes: usize) -> Self {
        assert!(1 <= bytes && bytes <= MOST_BYTES, "a length has one to eight bytes");
        self.length_bytes = bytes as u8;
        self
    }

    /// Sets the number of bytes in front of the length.
    ///
    /// # Panics
    ///
    /// Panics if it is more than 24.
    #[must_use]
    #[track_caller]
    pub const fn offset(mut self, bytes: usize) -> Self {
        assert!(bytes <= Affix::MAX_BYTES - MOST_BYTES, "an offset is at most 24 bytes");
        self.offset = bytes as u8;
        self
    }

    /// Sets the number to add to the length, such as -4 for a length that counts its own four
    /// bytes.
    #[must_use]
    pub const fn adjustment(mut self, bytes: isize) -> Self {
        self.adjustment = bytes;
        self
    }

    /// Sets how many bytes at the front are skipped: 0 keeps the header. By default the bytes up to
    /// the end of the length are skipped.
    ///
    /// The length is counted from their end. A header that is kept but not counted by the length
    /// must therefore be added with [`adjustment`](Self::adjustment).
    ///
    /// # Panics
    ///
    /// Panics if it is more than 32.
    #[must_use]
    #[track_caller]
    pub const fn skip(mut self, bytes: usize) -> Self {
        assert!(bytes <= Affix::MAX_BYTES, "at most 32 bytes are skipped");
        self.skip = Some(bytes as u8);
        self
    }

    /// Puts the length's least significant byte first.
    #[must_use]
    pub const fn little_endian(mut self) -> Self {
        self.is_little_endian = true;
        self
    }

    /// Makes the length count the bytes up to its own end as well.
    #[must_use]
    pub const fn counts_header(mut self) -> Self {
        self.counts_header = true;
        self
    }

    /// Where the length is, from the front of the stream.
    fn place(&self) -> Range<usize> {
        let offset = usize::from(self.offset);
        offset..offset + usize::from(self.length_bytes)
    }

    fn skipped(&self) -> usize {
        self.skip.map_or(self.place().end, usize::from)
    }

    /// Returns how much longer a frame is than its length says.
    fn added(&self) -> i128 {
        self.adjustment as i128 - if self.counts_header { self.place().end as i128 } else { 0 }
    }

    /// Returns the largest number that the header can say.
    fn most(&self) -> u64 {
        u64::MAX >> (8 * (MOST_BYTES - usize::from(self.length_bytes)))
    }

    /// Checks a frame's length against the limit, and against what the header can say.
    fn checked(&self, length: usize) -> Result<usize, FrameError> {
        let most = (i128::from(self.most()) + self.added()).max(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let limit = self.limit.min(most).min(usize::MAX - self.skipped());
        if length <= limit { Ok(length) } else { Err(FrameError::TooLong { length, limit }) }
    }
}

impl Framing for LengthDelimited {
    fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
        if stream.len() < self.header_bytes() {
            return Ok(Parsed::Incomplete);
        }
        let bytes = &stream[self.place()];
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number =
            if self.is_little_endian { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) };
        let (length, skip, header) = (i128::from(number) + self.added(), self.skipped(), self.place().end);
        if length < 0 || skip as i128 + length < header as i128 {
            // It is less than the header's bytes, or than what is taken off.
            let length = usize::try_from(number).unwrap_or(usize::MAX);
            return Err(FrameError::TooShort { length, header });
        }
        // One that no `usize` holds is over any limit.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let total = skip + self.checked(length)?;
        Ok(Parsed::Frame { payload: skip..total, total })
    }

    fn max_bytes(&self) -> usize {
        self.limit.saturating_add(self.header_bytes())
    }

    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError> {
        let (place, skip) = (self.place(), self.skipped());
        let length = self.checked(frame.len())?;
        let wrong = FrameError::TooShort { length, header: place.end };
        let number = length as i128 - self.added();
        // Where the header can say no length, it cannot say that of an empty frame either.
        let number = match u64::try_from(number) {
            Ok(number) if number <= self.most() => number,
            _ => return Err(wrong),
        };
        let mut header = [0; Affix::MAX_BYTES];
        let bytes = &number.to_be_bytes()[MOST_BYTES - place.len()..];
        header[place.clone()].copy_from_slice(bytes);
        if self.is_little_endian {
            header[place.clone()].reverse();
        }
        if skip < place.end {
            // The frame has its header, or a part of it.
            let from = skip.max(place.start);
            let own = frame.get(from - skip..place.end - skip).ok_or(wrong)?;
            if own != &header[from..place.end] {
                return Err(FrameError::WrongHeader { length });
            }
        }
        Ok([Affix::of(&header[..skip]), Affix::NONE])
    }

    fn header_bytes(&self) -> usize {
        self.place().end.max(self.skipped())
    }
}
