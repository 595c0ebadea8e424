//! Where a frame begins and ends in a stream.

use core::ops::Range;

use bufcore::author::find_byte;

use super::FrameError;

/// Bytes of the longest header, and of the longest delimiter.
pub(super) const MOST_BYTES: usize = 8;

/// Says what the front of a stream has of its first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Not where it ends.
    More,
    /// Where it is. Its bytes may not all have come.
    Frame {
        /// Where the frame's own bytes are, counted from the front of the stream.
        payload: Range<usize>,
        /// Bytes up to the next frame.
        total: usize,
    },
}

/// Few bytes around a frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around {
    bytes: [u8; MOST_BYTES],
    len: u8,
}

impl Around {
    fn new(bytes: &[u8]) -> Self {
        let mut around = Self::default();
        around.bytes[..bytes.len()].copy_from_slice(bytes);
        around.len = bytes.len() as u8;
        around
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

mod sealed {
    use super::{Around, FrameError, Look};

    pub trait Sealed {
        /// Looks at the front of a stream, of which the first `searched` bytes were looked at and
        /// had no end of a frame.
        fn look(&self, stream: &[u8], searched: usize) -> Result<Look, FrameError>;

        /// Returns the number of bytes at the front of a frame without which nothing is known of
        /// it.
        fn header_bytes(&self) -> usize;

        /// Returns the bytes of the longest frame with what is around it.
        fn most_bytes(&self) -> usize;

        /// Returns whether the bytes at the end of a stream are a frame, though they do not end as
        /// one.
        fn takes_rest(&self, rest: &[u8]) -> Result<bool, FrameError>;

        /// Returns what is in front of a frame, and behind it.
        fn around(&self, frame: &[u8]) -> Result<[Around; 2], FrameError>;
    }
}
pub(super) use sealed::Sealed;

/// Says where frames begin and end: [`LengthDelimited`] or [`Delimited`]. Other crates cannot
/// implement it.
///
/// ```
/// use bufworks::frames::{Delimited, FrameError, Framing, LengthDelimited, write_frames};
///
/// /// Sends two words in any framing.
/// fn send(framing: &impl Framing) -> Result<Vec<u8>, FrameError> {
///     let mut wire = Vec::new();
///     write_frames(&mut wire, framing, &["two", "words"])?;
///     Ok(wire)
/// }
/// assert_eq!(send(&Delimited::byte(b'\n', 100))?, b"two\nwords\n");
/// assert_eq!(send(&LengthDelimited::new(100).length_bytes(1))?, b"\x03two\x05words");
/// # Ok::<(), FrameError>(())
/// ```
pub trait Framing: Sealed {}

/// Frames with their length in front.
///
/// The length has four bytes unless set, the most significant one first, and does not count itself.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LengthDelimited {
    limit: usize,
    length_bytes: u8,
    is_little_endian: bool,
    counts_header: bool,
}

impl LengthDelimited {
    /// Makes a framing for frames of up to `limit` bytes, their header apart.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, length_bytes: 4, is_little_endian: false, counts_header: false }
    }

    /// Sets the number of bytes that the length has.
    ///
    /// # Panics
    ///
    /// Panics unless that is 1 to 8.
    #[must_use]
    #[track_caller]
    pub const fn length_bytes(mut self, bytes: usize) -> Self {
        assert!(1 <= bytes && bytes <= MOST_BYTES, "a length has one to eight bytes");
        self.length_bytes = bytes as u8;
        self
    }

    /// Puts the length's least significant byte first.
    #[must_use]
    pub const fn little_endian(mut self) -> Self {
        self.is_little_endian = true;
        self
    }

    /// Makes the length count its own bytes as well.
    #[must_use]
    pub const fn counts_header(mut self) -> Self {
        self.counts_header = true;
        self
    }

    /// Returns how much the length is greater than that of the frame alone.
    fn counted(&self) -> usize {
        if self.counts_header { self.header_bytes() } else { 0 }
    }

    /// Checks a frame's length against the limit, and against what the header can say.
    fn checked(&self, length: usize) -> Result<usize, FrameError> {
        let header = self.header_bytes();
        let most = most_of(header) - self.counted();
        let limit = self.limit.min(most).min(usize::MAX - header);
        if length <= limit { Ok(length) } else { Err(FrameError::TooLong { length, limit }) }
    }
}

impl Framing for LengthDelimited {}

impl Sealed for LengthDelimited {
    fn look(&self, stream: &[u8], _searched: usize) -> Result<Look, FrameError> {
        let header = self.header_bytes();
        let Some(bytes) = stream.get(..header) else { return Ok(Look::More) };
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number =
            if self.is_little_endian { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) };
        let Some(length) = number.checked_sub(self.counted() as u64) else {
            // It is less than the header's eight bytes at most.
            return Err(FrameError::TooShort { length: number as usize, header });
        };
        // One that no `usize` holds is over any limit.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let total = header + self.checked(length)?;
        Ok(Look::Frame { payload: header..total, total })
    }

    fn header_bytes(&self) -> usize {
        usize::from(self.length_bytes)
    }

    fn most_bytes(&self) -> usize {
        self.limit.saturating_add(self.header_bytes())
    }

    fn takes_rest(&self, _rest: &[u8]) -> Result<bool, FrameError> {
        Ok(false)
    }

    fn around(&self, frame: &[u8]) -> Result<[Around; 2], FrameError> {
        let header = self.header_bytes();
        let number = self.checked(frame.len())? + self.counted();
        let bytes = (number as u64).to_be_bytes();
        let mut before = Around::new(&bytes[MOST_BYTES - header..]);
        if self.is_little_endian {
            before.bytes[..header].reverse();
        }
        Ok([before, Around::default()])
    }
}

/// Returns the largest number that `bytes` bytes hold.
fn most_of(bytes: usize) -> usize {
    usize::try_from(u64::MAX >> (8 * (MOST_BYTES - bytes))).unwrap_or(usize::MAX)
}

/// Frames that end with a byte or a few, such as lines. The delimiter is no part of the frame.
///
/// Bytes that are left at the end of the stream are a last frame, as with lines; see
/// [`must_end`](Self::must_end).
///
/// ```
/// use bufworks::frames::{Delimited, FrameReader};
/// use bufworks::HeapPool;
///
/// let mut pool = HeapPool::new();
/// let framing = Delimited::sequence(b"\r\n", 8192).expect("two bytes");
/// let mut lines = FrameReader::new(&b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"[..], framing);
/// while let Some(line) = lines.next_frame(|bytes| pool.acquire(bytes))? {
///     if line.is_empty() {
///         break;
///     }
///     assert!(line.starts_with(b"GET ") || line.starts_with(b"Host: "));
/// }
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Delimited {
    limit: usize,
    delimiter: Around,
    must_end: bool,
}

impl Delimited {
    /// Makes a framing for frames of up to `limit` bytes, each with this byte behind it.
    #[must_use]
    pub fn byte(delimiter: u8, limit: usize) -> Self {
        Self { limit, delimiter: Around::new(&[delimiter]), must_end: false }
    }

    /// Makes a framing for frames of up to `limit` bytes, each with these bytes behind it; `None`
    /// unless there are one to eight.
    #[must_use]
    pub fn sequence(delimiter: &[u8], limit: usize) -> Option<Self> {
        let fits = (1..=MOST_BYTES).contains(&delimiter.len());
        fits.then(|| Self { limit, delimiter: Around::new(delimiter), must_end: false })
    }

    /// Makes a stream whose last frame has no delimiter [`Truncated`](FrameError::Truncated).
    #[must_use]
    pub fn must_end(mut self) -> Self {
        self.must_end = true;
        self
    }

    /// Finds a delimiter that begins in the frame and ends in the delimiter behind it, as `aa` does
    /// where a frame ends with `a`.
    fn begun(&self, frame: &[u8]) -> Option<usize> {
        let delimiter = self.delimiter.as_slice();
        let begins = |begun: &usize| {
            let (front, back) = delimiter.split_at(*begun);
            frame.ends_with(front) && delimiter.starts_with(back)
        };
        (1..delimiter.len()).rev().find(begins).map(|begun| frame.len() - begun)
    }

    /// Finds the first delimiter that begins at `from` or later.
    fn find(&self, stream: &[u8], from: usize) -> Option<usize> {
        let delimiter = self.delimiter.as_slice();
        let last = *delimiter.last()?;
        // By its last byte: where that is not, no delimiter ends.
        let mut at = from + delimiter.len() - 1;
        loop {
            at += find_byte(stream.get(at..)?, last)? + 1;
            if stream[..at].ends_with(delimiter) {
                return Some(at - delimiter.len());
            }
        }
    }
}

impl Framing for Delimited {}

impl Sealed for Delimited {
    fn look(&self, stream: &[u8], searched: usize) -> Result<Look, FrameError> {
        let (limit, width) = (self.limit, self.delimiter.as_slice().len());
        // One may have begun in what was searched.
        let found = self.find(stream, searched.saturating_sub(width - 1));
        let length = found.unwrap_or_else(|| stream.len().saturating_sub(width - 1));
        if length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        Ok(found.map_or(Look::More, |end| Look::Frame { payload: 0..end, total: end + width }))
    }

    fn header_bytes(&self) -> usize {
        0
    }

    fn most_bytes(&self) -> usize {
        self.limit.saturating_add(self.delimiter.as_slice().len())
    }

    fn takes_rest(&self, rest: &[u8]) -> Result<bool, FrameError> {
        // Behind a frame of the limit there was room for a part of a delimiter.
        let (length, limit) = (rest.len(), self.limit);
        if !self.must_end && length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        Ok(!self.must_end)
    }

    fn around(&self, frame: &[u8]) -> Result<[Around; 2], FrameError> {
        let (length, limit) = (frame.len(), self.limit);
        if length > limit {
            return Err(FrameError::TooLong { length, limit });
        }
        match self.find(frame, 0).or_else(|| self.begun(frame)) {
            Some(at) => Err(FrameError::HasDelimiter { at }),
            None => Ok([Around::default(), self.delimiter]),
        }
    }
}
