//! The file format, version 1.
//!
//! ```text
//! offset  bytes  what
//! 0       8      magic: the letters `BUFTRACE`
//! 8       1      version: 1
//! 9       1      flags: bit 0 is set when the recording stopped at its limit; the others are 0
//! 10             text: name
//!                text: how it was made
//!                text: date
//!                number: how many events follow
//!                the events, and nothing behind the last one
//! ```
//!
//! A *number* is unsigned, in base 128, least significant digit first: seven bits a byte, the top
//! bit set on all bytes but the last (LEB128). It is encoded in as few bytes as possible, at most
//! ten. A *text* is a number, its length in bytes, at most [`MAX_TEXT_BYTES`], and as many bytes of
//! UTF-8.
//!
//! An event is three or four numbers:
//!
//! ```text
//! head     bit 0: 0 for an acquire, 1 for a release
//!          bit 1: 1 when the thread is another than that of the event before
//!                 (in front of the first event, it is thread 0)
//!          from bit 2: nanoseconds since the event before
//!                 (for the first event, since the start of the recording)
//! thread   only when bit 1 of the head is set
//! id       of the buffer
//! bytes    only for an acquire: its size
//! ```
//!
//! The events obey the rules T1 to T4 of the [crate]. Most events take five to eight bytes.

use core::ops::Range;

use crate::trace::Checker;
use crate::{DecodeError, Event, EventKind, Fault, Meta, Trace, TraceError};

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"BUFTRACE";

/// The version that is written. A recording of a program's heap is of version 2, which
/// [`profile::format`](crate::profile::format) describes.
pub const VERSION: u8 = 1;

/// The longest text in the header, in bytes.
pub const MAX_TEXT_BYTES: usize = 4096;

/// The shortest event, in bytes: a release by the same thread.
const MIN_EVENT_BYTES: usize = 2;

const FLAG_CUT: u8 = 1;
const HEAD_RELEASE: u64 = 1;
const HEAD_OTHER_THREAD: u64 = 2;
const HEAD_BITS: u32 = 2;

impl Trace {
    /// Returns the bytes of the trace's file.
    ///
    /// ```
    /// use buftrace::{Event, EventKind, Meta, Trace};
    ///
    /// let events = vec![
    ///     Event { at_ns: 0, thread: 0, kind: EventKind::Acquire { id: 0, bytes: 1500 } },
    ///     Event { at_ns: 900, thread: 0, kind: EventKind::Release { id: 0 } },
    /// ];
    /// let trace = Trace::new(Meta::new("one packet"), events)?;
    /// let file = trace.encode();
    /// assert!(file.starts_with(&buftrace::format::MAGIC));
    /// assert_eq!(Trace::decode(&file)?, trace);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let meta = self.meta();
        let mut file = MAGIC.to_vec();
        file.push(VERSION);
        file.push(if meta.cut { FLAG_CUT } else { 0 });
        for text in [&meta.name, &meta.made_by, &meta.date] {
            put(&mut file, text.len() as u64);
            file.extend_from_slice(text.as_bytes());
        }
        put(&mut file, self.events().len() as u64);
        let mut before = Before::default();
        for event in self.events() {
            before.put(&mut file, event);
        }
        file
    }

    /// Reads a trace from the bytes of a file.
    ///
    /// Cost: memory for its events, at most twenty times the length of `file`, whatever its header
    /// claims.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if `file` is not exactly one well-formed trace.
    ///
    /// # Panics
    ///
    /// Never.
    ///
    /// ```
    /// use buftrace::{Fault, Trace};
    ///
    /// let error = Trace::decode(b"no trace").unwrap_err();
    /// assert_eq!((error.offset, error.fault), (0, Fault::NotATrace));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader { file, offset: 0 };
        if reader.take(MAGIC.len()).ok() != Some(&MAGIC[..]) {
            return Err(DecodeError { offset: 0, fault: Fault::NotATrace });
        }
        let version = reader.byte()?;
        if version != VERSION {
            return Err(reader.fault_at(MAGIC.len(), Fault::UnknownVersion { version }));
        }
        let flags = reader.byte()?;
        if flags & !FLAG_CUT != 0 {
            return Err(reader.fault_at(MAGIC.len() + 1, Fault::UnknownFlags { flags }));
        }
        let name = reader.text()?;
        let made_by = reader.text()?;
        let date = reader.text()?;
        let meta = Meta { name, made_by, date, cut: flags & FLAG_CUT != 0 };

        let counted_at = reader.offset;
        let count = reader.number()?;
        let rest = file.len() - reader.offset;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= rest / MIN_EVENT_BYTES) else {
            return Err(reader.fault_at(counted_at, Fault::Truncated));
        };
        let mut events = Vec::with_capacity(count);
        let mut checker = Checker::default();
        let mut before = Before::default();
        for _ in 0..count {
            let at = reader.offset;
            let event = before.take(&mut reader)?;
            checker.take(&event).map_err(|error| reader.fault_at(at, Fault::Trace(error)))?;
            events.push(event);
        }
        if reader.offset != file.len() {
            return Err(reader.fault(Fault::TrailingBytes));
        }
        Trace::checked(meta, events, checker).map_err(|error| reader.fault(Fault::Trace(error)))
    }
}

/// What the next event is relative to.
#[derive(Default)]
struct Before {
    at_ns: u64,
    thread: u32,
}

impl Before {
    fn put(&mut self, file: &mut Vec<u8>, event: &Event) {
        // Neither wraps nor loses bits: times do not go back (T1) and leave the two top bits free
        // (T4).
        let mut head = (event.at_ns - self.at_ns) << HEAD_BITS;
        if matches!(event.kind, EventKind::Release { .. }) {
            head |= HEAD_RELEASE;
        }
        if event.thread != self.thread {
            head |= HEAD_OTHER_THREAD;
        }
        put(file, head);
        if event.thread != self.thread {
            put(file, u64::from(event.thread));
        }
        put(file, u64::from(event.kind.id()));
        if let EventKind::Acquire { bytes, .. } = event.kind {
            put(file, bytes);
        }
        *self = Self { at_ns: event.at_ns, thread: event.thread };
    }

    fn take(&mut self, reader: &mut Reader<'_>) -> Result<Event, DecodeError> {
        let at = reader.offset;
        let head = reader.number()?;
        // Cannot wrap: `at_ns` was checked to be at most MAX_TIME_NS, and so is what is left of a
        // head.
        self.at_ns += head >> HEAD_BITS;
        if self.at_ns > crate::MAX_TIME_NS {
            let error = TraceError::TimeTooLate { at_ns: self.at_ns };
            return Err(reader.fault_at(at, Fault::Trace(error)));
        }
        if head & HEAD_OTHER_THREAD != 0 {
            let at = reader.offset;
            let thread = reader.small_number()?;
            if thread == self.thread {
                // There is one way to write a trace.
                return Err(reader.fault_at(at, Fault::BadNumber));
            }
            self.thread = thread;
        }
        let id = reader.small_number()?;
        let kind = if head & HEAD_RELEASE != 0 {
            EventKind::Release { id }
        } else {
            EventKind::Acquire { id, bytes: reader.number()? }
        };
        Ok(Event { at_ns: self.at_ns, thread: self.thread, kind })
    }
}

fn put(file: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        file.push(number as u8 | 0x80);
        number >>= 7;
    }
    file.push(number as u8);
}

/// Reads numbers and texts out of the bytes of a file, of either version.
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a [u8],
    /// How much is read; at most the length of the file.
    pub(crate) offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn fault(&self, fault: Fault) -> DecodeError {
        self.fault_at(self.offset, fault)
    }

    pub(crate) fn fault_at(&self, offset: usize, fault: Fault) -> DecodeError {
        DecodeError { offset, fault }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.offset.checked_add(bytes);
        let range: Option<Range<usize>> = end.map(|end| self.offset..end);
        let part =
            range.and_then(|range| self.file.get(range)).ok_or_else(|| self.fault(Fault::Truncated))?;
        self.offset += bytes;
        Ok(part)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.take(1).map(|part| part[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let start = self.offset;
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let digit = u64::from(byte & 0x7f);
            number |= digit << shift;
            // The tenth digit has room for one bit; a last digit of zero is one too many.
            if (number >> shift) != digit || (byte == 0 && shift > 0) {
                break;
            }
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.fault_at(start, Fault::BadNumber))
    }

    pub(crate) fn small_number(&mut self) -> Result<u32, DecodeError> {
        let start = self.offset;
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.fault_at(start, Fault::BadNumber))
    }

    pub(crate) fn text(&mut self) -> Result<String, DecodeError> {
        let start = self.offset;
        let length = self.number()?;
        let Some(bytes) = usize::try_from(length).ok().filter(|bytes| *bytes <= MAX_TEXT_BYTES) else {
            let bytes = usize::try_from(length).unwrap_or(usize::MAX);
            return Err(self.fault_at(start, Fault::Trace(TraceError::TextTooLong { bytes })));
        };
        let start = self.offset;
        let text = core::str::from_utf8(self.take(bytes)?);
        text.map(str::to_owned).map_err(|_| self.fault_at(start, Fault::BadText))
    }
}
