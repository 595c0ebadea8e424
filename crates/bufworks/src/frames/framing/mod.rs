//! Where a frame begins and ends in a stream.

mod delimited;
mod length;
mod varint;

use core::ops::{ControlFlow, Range};

use super::FrameError;
pub use delimited::Delimited;
pub use length::LengthDelimited;
pub use varint::VarintDelimited;

/// Says what the front of a stream has of its first frame.
///
/// ```
/// use bufworks::frames::{Framing, LengthDelimited, Parsed};
///
/// let framing = LengthDelimited::new(100).length_bytes(1);
/// assert_eq!(framing.parse(b"", 0)?, Parsed::Incomplete);
/// assert_eq!(framing.parse(b"\x05he", 0)?, Parsed::Frame { payload: 1..6, total: 6 });
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Not where it ends: more bytes have to come.
    Incomplete,
    /// Where it is. Its bytes may not all have come.
    Frame {
        /// Where the bytes are that a reader returns, counted from the front of the stream.
        payload: Range<usize>,
        /// Bytes up to the next frame. At least one, and no less than the payload's end.
        total: usize,
    },
}

/// Up to 32 bytes in front of a frame, or behind it.
///
/// ```
/// use bufworks::frames::{Delimited, Framing};
///
/// let [before, behind] = Delimited::byte(b'\n', 100).around(b"line")?;
/// assert_eq!((before.as_slice(), behind.as_slice()), (&b""[..], &b"\n"[..]));
/// # Ok::<(), bufworks::frames::FrameError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Affix {
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
}

impl Affix {
    /// The most bytes that there can be.
    pub const MAX_BYTES: usize = 32;
    /// No bytes.
    pub const NONE: Self = Self { bytes: [0; Self::MAX_BYTES], len: 0 };

    /// Makes an affix of these bytes; `None` when there are more than
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= Self::MAX_BYTES).then(|| Self::of(bytes))
    }

    /// Makes an affix of bytes that are not too many.
    fn of(bytes: &[u8]) -> Self {
        let mut affix = Self::NONE;
        affix.bytes[..bytes.len()].copy_from_slice(bytes);
        affix.len = bytes.len() as u8;
        affix
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Says where frames begin and end: [`LengthDelimited`], [`VarintDelimited`], [`Delimited`], or a
/// protocol of your own.
///
/// ```
/// use bufworks::HeapPool;
/// use bufworks::frames::{Affix, FrameError, FrameReader, Framing, Parsed, write_frames};
///
/// /// A length of one byte in front of each frame, and the sum of its bytes behind it.
/// struct Summed;
///
/// impl Framing for Summed {
///     fn parse(&self, stream: &[u8], _searched: usize) -> Result<Parsed, FrameError> {
///         let Some(&length) = stream.first() else { return Ok(Parsed::Incomplete) };
///         let end = 1 + usize::from(length);
///         Ok(Parsed::Frame { payload: 1..end, total: end + 1 })
///     }
///
///     fn max_bytes(&self) -> usize {
///         1 + 255 + 1
///     }
///
///     fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError> {
///         let too_long = FrameError::TooLong { length: frame.len(), limit: 255 };
///         let length = u8::try_from(frame.len()).map_err(|_| too_long)?;
///         let sum = frame.iter().copied().fold(0, u8::wrapping_add);
///         Ok([[length], [sum]].map(|bytes| Affix::new(&bytes).expect("one byte")))
///     }
/// }
///
/// let mut wire = Vec::new();
/// write_frames(&mut wire, &Summed, &["ab", "c"])?;
/// assert_eq!(wire, b"\x02ab\xc3\x01cc");
/// let mut pool = HeapPool::new();
/// let mut frames = FrameReader::new(&wire[..], Summed);
/// assert_eq!(frames.next_frame(|bytes| pool.acquire(bytes))?.unwrap(), *b"ab");
/// # Ok::<(), FrameError>(())
/// ```
pub trait Framing {
    /// Parses the front of a stream, of which the first `searched` bytes were parsed and had no end
    /// of a frame. It is called again when more bytes have come, with those that it has seen.
    ///
    /// # Errors
    ///
    /// Those of the protocol, such as [`FrameError::TooLong`]. A result that contradicts itself is
    /// [`FrameError::Contradiction`]. A frame that is still incomplete at
    /// [`max_bytes`](Self::max_bytes) is too long.
    fn parse(&self, stream: &[u8], searched: usize) -> Result<Parsed, FrameError>;

    /// Returns the bytes of the longest frame with what is around it. A reader's chunk grows up to
    /// this while it does not know where a frame ends.
    fn max_bytes(&self) -> usize;

    /// Returns the bytes in front of a frame that is written, and those behind it.
    ///
    /// # Errors
    ///
    /// When there can be no such frame.
    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError>;

    /// Returns the number of bytes at the front of a frame without which nothing is known of it: a
    /// reader [by frame](super::FrameReader::by_frame) reads so many first. Unless implemented it
    /// is 0: there is no header.
    fn header_bytes(&self) -> usize {
        0
    }

    /// Returns whether the bytes at the end of a stream are a frame, though they do not end as one.
    /// Unless implemented they are not.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    fn takes_rest(&self, _rest: &[u8]) -> Result<bool, FrameError> {
        Ok(false)
    }

    /// Finds the next frame behind one that was [too long](FrameError::TooLong). `Break` has the
    /// bytes in front of it. `Continue` has bytes that are dropped, and it is called again when
    /// more have come. `None`, unless implemented: it cannot be found, and the error is permanent.
    fn find_next(&self, _stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
        None
    }
}
