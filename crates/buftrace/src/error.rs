//! The reasons why events are not a trace, and why bytes are not a file of one.

use core::fmt;

/// Why a sequence of events is not a trace.
///
/// ```
/// use buftrace::{Event, EventKind, Meta, Trace, TraceError};
///
/// let acquire = |at_ns, id| {
///     Event { at_ns, thread: 0, kind: EventKind::Acquire { id, bytes: 64 } }
/// };
/// let back_in_time = Trace::new(Meta::new("a"), vec![acquire(20, 0), acquire(10, 1)]);
/// assert_eq!(back_in_time, Err(TraceError::TimeGoesBack { at_ns: 10, before_ns: 20 }));
///
/// let twice = Trace::new(Meta::new("b"), vec![acquire(0, 0), acquire(1, 0)]).unwrap_err();
/// assert_eq!(twice.to_string(), "buffer 0 is acquired while it is out");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The time is earlier than that of the previous event.
    TimeGoesBack {
        /// The time, in nanoseconds.
        at_ns: u64,
        /// The time of the previous event.
        before_ns: u64,
    },
    /// The time is over [`MAX_TIME_NS`](crate::MAX_TIME_NS).
    TimeTooLate {
        /// The time, in nanoseconds.
        at_ns: u64,
    },
    /// The buffer is larger than [`MAX_BYTES`](crate::MAX_BYTES).
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// The id is acquired while it is in use.
    AcquiredTwice {
        /// The id.
        id: u32,
    },
    /// The id is released while it is not in use.
    NotOut {
        /// The id.
        id: u32,
    },
    /// The id, or the thread, is not dense: it is greater than the number of earlier ones.
    Sparse {
        /// The id or thread.
        number: u32,
        /// The largest valid number at this event.
        limit: u32,
    },
    /// A text of the header is longer than
    /// [`format::MAX_TEXT_BYTES`](crate::format::MAX_TEXT_BYTES).
    TextTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TimeGoesBack { at_ns, before_ns } => {
                write!(f, "time goes back from {before_ns} to {at_ns} ns")
            }
            Self::TimeTooLate { at_ns } => write!(f, "time of {at_ns} ns is over the limit"),
            Self::TooLarge { bytes } => write!(f, "buffer of {bytes} bytes is over the limit"),
            Self::AcquiredTwice { id } => write!(f, "buffer {id} is acquired while it is out"),
            Self::NotOut { id } => write!(f, "buffer {id} is released while it is not out"),
            Self::Sparse { number, limit } => {
                write!(f, "number {number} where {limit} is the largest possible")
            }
            Self::TextTooLong { bytes } => write!(f, "header text of {bytes} bytes is over the limit"),
        }
    }
}

impl core::error::Error for TraceError {}

/// Why bytes are not a valid trace file, and at which offset.
///
/// ```
/// use buftrace::{DecodeError, Fault, Meta, Trace};
///
/// let file = Trace::new(Meta::new("app"), Vec::new())?.encode();
/// let torn = &file[..file.len() - 1]; // a copy that broke off
/// let error = Trace::decode(torn).unwrap_err();
/// assert_eq!(error, DecodeError { offset: torn.len(), fault: Fault::Truncated });
/// println!("{error}"); // says where, too
/// # Ok::<(), buftrace::TraceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// The offset in the file, in bytes, of the first part that could not be read.
    pub offset: usize,
    /// The fault there.
    pub fault: Fault,
}

/// A fault of a file.
///
/// ```
/// use buftrace::{Fault, Meta, Trace};
///
/// let mut file = Trace::new(Meta::new("app"), Vec::new())?.encode();
/// file[buftrace::format::MAGIC.len()] = 9; // of a later program
/// let error = Trace::decode(&file).unwrap_err();
/// match error.fault {
///     Fault::UnknownVersion { version } => assert_eq!(version, 9),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), buftrace::TraceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It does not start with the magic bytes of a trace.
    NotATrace,
    /// Its version is unknown to this reader.
    UnknownVersion {
        /// The version.
        version: u8,
    },
    /// A flag is set that this version does not define.
    UnknownFlags {
        /// All flags.
        flags: u8,
    },
    /// It ends too early.
    Truncated,
    /// A number is too large for its field, or is encoded in more bytes than necessary.
    BadNumber,
    /// A text is not UTF-8.
    BadText,
    /// There are bytes after the last event.
    TrailingBytes,
    /// The checksum of a block does not match its bytes.
    BadChecksum,
    /// A record is of a kind that this version does not define, or in an invalid position.
    BadRecord {
        /// The number of the kind.
        kind: u8,
    },
    /// A record names a call stack or an object that no earlier record has introduced.
    BadReference,
    /// An event, or a text of the header, breaks a rule of traces.
    Trace(TraceError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::NotATrace => write!(f, "not a buffer trace"),
            Fault::UnknownVersion { version } => write!(f, "unknown trace version {version}"),
            Fault::UnknownFlags { flags } => write!(f, "unknown trace flags {flags:#04x}"),
            Fault::Truncated => write!(f, "trace ends too early"),
            Fault::BadNumber => write!(f, "malformed number"),
            Fault::BadText => write!(f, "text is not UTF-8"),
            Fault::TrailingBytes => write!(f, "bytes behind the last event"),
            Fault::BadChecksum => write!(f, "block does not match its checksum"),
            Fault::BadRecord { kind } => write!(f, "unexpected record of kind {kind}"),
            Fault::BadReference => write!(f, "record names what was not introduced"),
            Fault::Trace(_) => write!(f, "a rule of traces is broken"),
        }?;
        write!(f, " (at byte {})", self.offset)
    }
}

impl core::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.fault {
            Fault::Trace(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::error::Error;

    use super::{DecodeError, Fault, TraceError};

    /// Where and why, once each.
    #[test]
    fn levels_do_not_repeat_each_other() {
        let error = DecodeError { offset: 77, fault: Fault::Trace(TraceError::NotOut { id: 33 }) };
        let cause = error.source().expect("a rule").to_string();
        assert!(!error.to_string().contains(&cause), "{error}");
        assert!(error.to_string().contains("77") && cause.contains("33"));
    }
}
