//! Why a message was not sent, or not received.

use core::fmt;

/// Why a message was not sent. Nothing of it is in the queue.
///
/// ```
/// use bufmirror::messages::{self, SendError};
///
/// let (sender, receiver) = messages::channel(4096)?;
/// let mut dropped = 0;
/// for sample in 0..10_000_u32 {
///     match sender.try_send(&sample.to_le_bytes()) {
///         Ok(_sequence) => {}
///         Err(SendError::Full { .. }) => dropped += 1, // full: drop the message
///         Err(error) => return Err(error.into()),
///     }
/// }
/// assert!(dropped > 0);
/// drop(receiver);
/// assert_eq!(sender.try_send(b"late"), Err(SendError::Closed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room now. Only the `try_` methods return this.
    ///
    /// Received messages may still occupy room: an earlier one is kept.
    Full {
        /// Bytes of the message's frame, with header and padding.
        requested: usize,
        /// Bytes that are free. They may be enough, but reserved for a sender that has waited for
        /// long.
        available: usize,
    },
    /// There was no room for the message until the timeout ended. It is also possible that the room
    /// was given to a sender that had waited longer. As with [`Full`](Self::Full), a kept earlier
    /// message occupies the room of later ones.
    TimedOut,
    /// The queue was closed, or has no receiver left.
    Closed,
    /// No queue of this capacity can hold such a message.
    TooLong {
        /// Bytes of the message.
        requested: usize,
        /// Bytes of the longest message.
        limit: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Full { requested, available } => {
                write!(f, "queue full: {requested} bytes requested, {available} bytes available")
            }
            Self::TimedOut => write!(f, "queue full until the time was over"),
            Self::Closed => write!(f, "queue closed"),
            Self::TooLong { requested, limit } => {
                write!(f, "message of {requested} bytes in a queue for up to {limit} bytes")
            }
        }
    }
}

impl core::error::Error for SendError {}

/// Why no message was received.
///
/// ```
/// use bufmirror::messages::{self, RecvError};
///
/// let (sender, receiver) = messages::channel(4096)?;
/// assert_eq!(receiver.try_recv().unwrap_err(), RecvError::Empty);
/// sender.send(&[7; 100])?;
/// drop(sender);
///
/// let mut buffer = vec![0; 16];
/// while let Err(RecvError::TooSmall { needed, .. }) = receiver.recv_into(&mut buffer) {
///     buffer.resize(needed, 0); // the message waits
/// }
/// assert_eq!(buffer, [7; 100]);
/// assert_eq!(receiver.recv().unwrap_err(), RecvError::Closed); // and empty
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecvError {
    /// No message can be received now. Only the `try_` methods return this.
    ///
    /// Messages may have been sent, but come after an earlier one that a closure is still writing.
    Empty,
    /// There was no message for this receiver until the timeout ended. Other receivers may have
    /// received some. As with [`Empty`](Self::Empty), an earlier message that a closure is writing
    /// holds up later ones.
    TimedOut,
    /// The queue was closed, or has no sender left, and all messages were received.
    Closed,
    /// The next message is longer than the buffer. The message remains the next one.
    TooSmall {
        /// Bytes of the message.
        needed: usize,
        /// Bytes of the buffer.
        available: usize,
    },
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => write!(f, "queue empty"),
            Self::TimedOut => write!(f, "queue empty until the time was over"),
            Self::Closed => write!(f, "queue closed"),
            Self::TooSmall { needed, available } => {
                write!(f, "message of {needed} bytes for a buffer of {available} bytes")
            }
        }
    }
}

impl core::error::Error for RecvError {}
