//! The errors of frames.

use core::fmt;
use std::io;

use bufcore::AcquireError;

/// Names what is wrong with a stream of frames, or with what a reader needs.
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
    /// A frame is longer than the framing allows. What follows it cannot be found.
    TooLong {
        /// The frame's length in bytes. Of a frame that ends with a delimiter, as much as has come.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A length is smaller than the part of the header that it counts, or than what is to be taken
    /// off. What follows cannot be found.
    TooShort {
        /// The length, in bytes.
        length: usize,
        /// Bytes of the header.
        header: usize,
    },
    /// A frame that is to be written begins with its header, whose length is not the frame's.
    WrongHeader {
        /// The frame's length in bytes.
        length: usize,
    },
    /// The framing says that a frame has no bytes, or a payload outside of it.
    Contradiction,
    /// A frame that is to be written has the delimiter in it.
    HasDelimiter {
        /// Where in the frame.
        at: usize,
    },
    /// The pool refused a buffer. Nothing is lost: the next call asks again.
    Acquire(AcquireError),
    /// The buffer that `acquire` returned has less room than it was asked for, or has the room and
    /// is not empty. Nothing is lost.
    NoRoom {
        /// Bytes that it was asked for.
        requested: usize,
        /// Bytes of room that it has.
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

/// The kind of the [`AcquireError`] for a buffer that was refused, `StorageFull` for one without
/// room, `UnexpectedEof` for a frame without its end, and `InvalidData` for what is wrong with a
/// frame.
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
