//! Where a frame begins and ends in a stream.

mod delimited;
mod length;
mod varint;

use core::ops::{ControlFlow, Range};

use super::FrameError;
pub use delimited::Delimited;
pub use length::LengthDelimited;
pub use varint::VarintDelimited;

/// The position of the first frame at the front of a stream.
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
    /// The end is not yet known: more bytes are needed.
    Incomplete,
    /// Where it is. Some of its bytes may not have arrived.
    Frame {
        /// The range of bytes that a reader returns, counted from the front of the stream.
        payload: Range<usize>,
        /// The distance to the next frame, in bytes. At least one, and not less than the payload's
        /// end.
        total: usize,
    },
}

/// Up to 32 bytes before or after a frame.
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
    /// The largest number of bytes.
    pub const MAX_BYTES: usize = 32;
    /// No bytes.
    pub const NONE: Self = Self { bytes: [0; Self::MAX_BYTES], len: 0 };

    /// Makes an affix of these bytes; `None` if there are more than [`MAX_BYTES`](Self::MAX_BYTES).
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

/// Finds the beginning and the end of frames: [`LengthDelimited`], [`VarintDelimited`],
/// [`Delimited`], or a protocol of your own.
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
    /// Parses the front of a stream. Its first `searched` bytes were parsed before, and contained
    /// no end of a frame. It is called again when more bytes have arrived, with all bytes of the
    /// frame.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooLong`], or for other errors of the protocol [`FrameError::Io`] of kind
    /// `InvalidData`. An inconsistent result is reported as [`FrameError::Contradiction`]. A frame
    /// that is still incomplete at [`max_bytes`](Self::max_bytes) is too long.
    fn parse(&self, stream: &[u8], searched: usize) -> Result<Parsed, FrameError>;

    /// Returns the bytes of the longest frame with its header and delimiter. A reader's chunk grows
    /// up to this size while the end of a frame is unknown.
    fn max_bytes(&self) -> usize;

    /// Returns the bytes to write before and after a frame.
    ///
    /// # Errors
    ///
    /// Returns an error if such a frame cannot be written.
    fn around(&self, frame: &[u8]) -> Result<[Affix; 2], FrameError>;

    /// Returns the number of bytes at the front of a frame that are needed to parse it: a reader
    /// [by frame](super::FrameReader::by_frame) reads these first. The default is 0: there is no
    /// header.
    fn header_bytes(&self) -> usize {
        0
    }

    /// Returns whether the bytes at the end of a stream are a frame, although its end is missing.
    /// The default is `false`.
    ///
    /// # Errors
    ///
    /// The errors are those of [`parse`](Self::parse).
    fn takes_rest(&self, _rest: &[u8]) -> Result<bool, FrameError> {
        Ok(false)
    }

    /// Finds the next frame after one that was [too long](FrameError::TooLong). `Break` has the
    /// number of bytes before it. `Continue` has the number of bytes to drop; the method is called
    /// again when more have arrived. It must leave fewer than [`max_bytes`](Self::max_bytes), or
    /// none. The default is `None`: it cannot be found, and the error is permanent.
    fn find_next(&self, _stream: &[u8]) -> Option<ControlFlow<usize, usize>> {
        None
    }
}
