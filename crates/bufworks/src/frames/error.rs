//! The errors of frames.

use core::fmt;
use std::io;

use bufcore::AcquireError;

/// An error of a stream of frames, or of the reader.
///
/// ```
/// use bufworks::frames::{FrameError, FrameReader, LengthDelimited};
/// use bufworks::HeapPool;
///
/// let mut pool = HeapPool::new();
/// let mut frames = FrameReader::new(&b"\0\0\x10\0"[..], LengthDelimited::new(100));
/// let error = frames.next_frame(|bytes| pool.acquire(bytes)).unwrap_err();
/// assert!(matches!(error, FrameError::TooLong { length: 4096, limit: 100 }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame is longer than the framing allows. Unless the framing skips it, the next frame
    /// cannot be found.
    TooLong {
        /// The frame's length in bytes. For a frame that ends with a delimiter, the bytes that have
        /// arrived.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A length is smaller than the part of the header that it counts, or than the bytes to skip.
    /// The next frame cannot be found.
    TooShort {
        /// The length, in bytes.
        length: usize,
        /// Bytes of the header.
        header: usize,
    },
    /// A frame to be written begins with its header, whose length does not match the frame.
    WrongHeader {
        /// The frame's length in bytes.
        length: usize,
    },
    /// The framing describes a frame without bytes, a payload outside of it, or a header that is
    /// longer than it; or it drops more bytes of a frame that is too long than there are, or too
    /// few.
    Contradiction,
    /// A frame to be written contains the delimiter.
    HasDelimiter {
        /// Its offset in the frame.
        at: usize,
    },
    /// The pool could not serve a buffer. Nothing is lost: the next call tries again.
    Acquire(AcquireError),
    /// The buffer that `acquire` returned has less room than requested, or is not empty. Nothing is
    /// lost.
    NoRoom {
        /// The requested bytes.
        requested: usize,
        /// The buffer's bytes of room.
        available: usize,
    },
    /// The stream ended inside a frame.
    Truncated,
    /// The stream failed. No byte that was read is lost.
    Io(io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { length, limit } => {
                write!(f, "a frame of {length} bytes is over the limit of {limit}")
            }
            Self::TooShort { length, header } => {
                write!(f, "a frame with its header of {header} bytes says that it has {length}")
            }
            Self::WrongHeader { length } => {
                write!(f, "a frame of {length} bytes has a header with another length")
            }
            Self::Contradiction => write!(f, "the framing contradicts itself"),
            Self::HasDelimiter { at } => write!(f, "the frame has the delimiter in it, at byte {at}"),
            Self::Acquire(_) => write!(f, "no buffer for a frame"),
            Self::NoRoom { requested, available } if available >= requested => {
                write!(f, "a buffer of {requested} bytes was asked for, and is not empty")
            }
            Self::NoRoom { requested, available } => {
                write!(f, "a buffer of {requested} bytes was asked for, and has room for {available}")
            }
            Self::Truncated => write!(f, "the stream ended inside a frame"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Acquire(error) => Some(error),
            // It prints as itself.
            Self::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<AcquireError> for FrameError {
    fn from(error: AcquireError) -> Self {
        Self::Acquire(error)
    }
}

/// The kind of the [`AcquireError`] for a failed acquire, `StorageFull` for a buffer without room,
/// `UnexpectedEof` for a truncated frame, and `InvalidData` for an invalid one.
impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        let kind = match error {
            FrameError::Io(error) => return error,
            FrameError::Acquire(refused) => Self::from(refused).kind(),
            FrameError::NoRoom { .. } => io::ErrorKind::StorageFull,
            FrameError::Truncated => io::ErrorKind::UnexpectedEof,
            FrameError::TooLong { .. }
            | FrameError::TooShort { .. }
            | FrameError::WrongHeader { .. }
            | FrameError::Contradiction
            | FrameError::HasDelimiter { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
