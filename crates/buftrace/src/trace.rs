//! A trace: events that obey the rules T1 to T4 of the [`crate`].

use std::fs;
use std::io;
use std::path::Path;

use crate::TraceError;
use crate::format::MAX_TEXT_BYTES;

/// The largest buffer that a trace can hold, in bytes.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// The latest time that a trace can hold: about 146 years after its start.
pub const MAX_TIME_NS: u64 = u64::MAX >> 2;

/// The header of a trace: its origin. Each text is arbitrary, and at most [`MAX_TEXT_BYTES`] long.
///
/// ```
/// use buftrace::Meta;
///
/// let meta = Meta { made_by: "redis-benchmark 7.0".into(), ..Meta::new("redis") };
/// assert_eq!((&meta.name[..], meta.cut), ("redis", false));
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// A short name, such as `redis`.
    pub name: String,
    /// How it was made: programs, versions, commands.
    pub made_by: String,
    /// The day, as `2026-01-31`; or nothing.
    pub date: String,
    /// Whether the recording stopped at its limit while the program continued.
    pub cut: bool,
}

impl Meta {
    /// Makes a header with a name, and defaults otherwise.
    ///
    /// ```
    /// use buftrace::Meta;
    ///
    /// let mut meta = Meta::new("redis");
    /// meta.date = "2026-01-31".to_owned();
    /// assert_eq!(meta.made_by, "");
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn check(&self) -> Result<(), TraceError> {
        for text in [&self.name, &self.made_by, &self.date] {
            if text.len() > MAX_TEXT_BYTES {
                return Err(TraceError::TextTooLong { bytes: text.len() });
            }
        }
        Ok(())
    }
}

/// One event: a buffer that a thread acquired or released.
///
/// ```
/// use buftrace::{Event, EventKind, Meta, Trace};
///
/// // A trace that no program made: 100 packets, one each microsecond, each out for half of it.
/// let at = |packet: u64, half: u64| packet * 1_000 + half * 500;
/// let events = (0..100).flat_map(|packet| {
///     let acquire = EventKind::Acquire { id: 0, bytes: 1500 };
///     let release = EventKind::Release { id: 0 };
///     [
///         Event { at_ns: at(packet, 0), thread: 0, kind: acquire },
///         Event { at_ns: at(packet, 1), thread: 0, kind: release },
///     ]
/// });
/// let trace = Trace::new(Meta::new("packets"), events.collect())?;
/// assert_eq!((trace.ids(), trace.duration_ns()), (1, 99_500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When: nanoseconds since the recording began.
    pub at_ns: u64,
    /// The thread of the event.
    pub thread: u32,
    /// What.
    pub kind: EventKind,
}

/// The kind of an event.
///
/// ```
/// use bufcore::{BufferPool, HeapPool};
/// use buftrace::{EventKind, Meta, Recorder, Recording};
///
/// let recording = Recording::new();
/// let mut pool = Recorder::new(HeapPool::new(), &recording);
/// drop(pool.acquire(1500)?);
/// drop(pool.acquire(64)?);
///
/// let trace = recording.finish(Meta::new("two sizes"));
/// let sizes = trace.events().iter().filter_map(|event| match event.kind {
///     EventKind::Acquire { bytes, .. } => Some(bytes),
///     EventKind::Release { .. } => None,
/// });
/// assert_eq!(sizes.collect::<Vec<_>>(), [1500, 64]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Acquired a buffer.
    Acquire {
        /// Identifies the buffer until it is released.
        id: u32,
        /// The requested capacity in bytes; for a detached frame, its length.
        bytes: u64,
    },
    /// Released a buffer.
    Release {
        /// The buffer.
        id: u32,
    },
}

impl EventKind {
    /// Returns the buffer of this event.
    ///
    /// ```
    /// use buftrace::EventKind;
    ///
    /// let acquire = EventKind::Acquire { id: 7, bytes: 64 };
    /// assert_eq!(acquire.id(), EventKind::Release { id: 7 }.id());
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        match *self {
            Self::Acquire { id, .. } | Self::Release { id } => id,
        }
    }
}

/// The requests of a program to its buffer pools, in order.
///
/// ```
/// use buftrace::{Event, EventKind, Meta, Trace};
///
/// let events = vec![
///     Event { at_ns: 0, thread: 0, kind: EventKind::Acquire { id: 0, bytes: 1500 } },
///     Event { at_ns: 900, thread: 0, kind: EventKind::Release { id: 0 } },
/// ];
/// let trace = Trace::new(Meta::new("one packet"), events)?;
/// assert_eq!((trace.events().len(), trace.ids(), trace.duration_ns()), (2, 1, 900));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    meta: Meta,
    events: Vec<Event>,
    checker: Checker,
}

impl Trace {
    /// Makes a trace of these events.
    ///
    /// # Errors
    ///
    /// Returns an error if they break one of the rules T1 to T4 of the [crate], or if a text of
    /// `meta` is too long.
    ///
    /// ```
    /// use buftrace::{Event, EventKind, Meta, Trace, TraceError};
    ///
    /// let release = Event { at_ns: 0, thread: 0, kind: EventKind::Release { id: 0 } };
    /// let error = Trace::new(Meta::new("wrong"), vec![release]).unwrap_err();
    /// assert_eq!(error, TraceError::NotOut { id: 0 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(meta: Meta, events: Vec<Event>) -> Result<Self, TraceError> {
        meta.check()?;
        let mut checker = Checker::default();
        for event in &events {
            checker.take(event)?;
        }
        Ok(Self { meta, events, checker })
    }

    /// Writes the trace to a file, in the compact [format](crate::format). An existing file of that
    /// name is replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    ///
    /// ```
    /// use buftrace::{Meta, Trace};
    ///
    /// let trace = Trace::new(Meta::new("nothing"), Vec::new())?;
    /// # let path = std::env::temp_dir().join(format!("trace-{}.buftrace", std::process::id()));
    /// trace.save(&path)?;
    /// assert_eq!(Trace::load(&path)?, trace);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, self.encode())
    }

    /// Reads a trace from a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read; of kind [`io::ErrorKind::InvalidData`], with a
    /// [`DecodeError`](crate::DecodeError) as source, if it is not a trace.
    ///
    /// ```
    /// use buftrace::Trace;
    ///
    /// let error = Trace::load("no-such-file.buftrace").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::decode(&fs::read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Returns what `checker` has already seen to be right. For the reader of files.
    pub(crate) fn checked(meta: Meta, events: Vec<Event>, checker: Checker) -> Result<Self, TraceError> {
        meta.check()?;
        Ok(Self { meta, events, checker })
    }

    /// Returns the header of the trace.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the events, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of ids: each is below it. In a recorded trace it is the most buffers in
    /// use at once.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Meta, Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let mut pool = Recorder::new(HeapPool::new(), &recording);
    /// for _ in 0..10 {
    ///     drop((pool.acquire(64)?, pool.acquire(64)?));
    /// }
    /// let trace = recording.finish(Meta::new("pairs"));
    /// // A reader keeps what it knows of each buffer in a table.
    /// let mut out = vec![false; trace.ids()];
    /// for event in trace.events() {
    ///     out[event.kind.id() as usize] ^= true;
    /// }
    /// assert_eq!(out, [false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ids(&self) -> usize {
        self.checker.out.len()
    }

    /// Returns the number of threads: each is below it.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Meta, Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let buf = Recorder::new(HeapPool::new(), &recording).acquire(1500)?;
    /// std::thread::spawn(move || drop(buf)).join().unwrap();
    /// let trace = recording.finish(Meta::new("handed on"));
    /// assert_eq!(trace.threads(), 2);
    /// assert!(trace.events().iter().all(|event| event.thread < 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn threads(&self) -> usize {
        self.checker.threads as usize
    }

    /// Returns the time from the start of the recording to the last event, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.checker.at_ns
    }

    /// Returns the ids in use after the last event, ascending.
    ///
    /// ```
    /// use buftrace::{Event, EventKind, Meta, Trace};
    ///
    /// let events = vec![
    ///     Event { at_ns: 0, thread: 0, kind: EventKind::Acquire { id: 0, bytes: 1500 } },
    ///     Event { at_ns: 900, thread: 0, kind: EventKind::Release { id: 0 } },
    /// ];
    /// let trace = Trace::new(Meta::new("one packet"), events)?;
    /// assert_eq!(trace.out_at_end(), []);
    /// assert_eq!(trace.prefix(1).out_at_end(), [0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn out_at_end(&self) -> Vec<u32> {
        (0..).zip(&self.checker.out).filter(|(_, out)| **out).map(|(id, _)| id).collect()
    }

    /// Keeps the first `events` events, and marks the trace as cut if those are not all. A buffer
    /// that was acquired among them and released later is in use at the end.
    ///
    /// ```
    /// use buftrace::{Event, EventKind, Meta, Trace};
    ///
    /// let events = vec![
    ///     Event { at_ns: 0, thread: 0, kind: EventKind::Acquire { id: 0, bytes: 1500 } },
    ///     Event { at_ns: 900, thread: 0, kind: EventKind::Release { id: 0 } },
    /// ];
    /// let trace = Trace::new(Meta::new("one packet"), events)?;
    /// let start = trace.prefix(1);
    /// assert_eq!((start.events().len(), start.meta().cut), (1, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn prefix(mut self, events: usize) -> Self {
        if events >= self.events.len() {
            return self;
        }
        self.events.truncate(events);
        self.checker = Checker::default();
        for event in &self.events {
            let fine = self.checker.take(event);
            debug_assert!(fine.is_ok(), "a prefix of a trace is one: {fine:?}");
        }
        self.meta.cut = true;
        self
    }
}

/// Checks events one by one. It grows by at most one entry an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checker {
    /// For each id so far, whether it is out.
    out: Vec<bool>,
    threads: u32,
    at_ns: u64,
}

impl Checker {
    pub(crate) fn take(&mut self, event: &Event) -> Result<(), TraceError> {
        if event.at_ns < self.at_ns {
            return Err(TraceError::TimeGoesBack { at_ns: event.at_ns, before_ns: self.at_ns });
        }
        if event.at_ns > MAX_TIME_NS {
            return Err(TraceError::TimeTooLate { at_ns: event.at_ns });
        }
        if event.thread > self.threads || event.thread == u32::MAX {
            return Err(TraceError::Sparse { number: event.thread, limit: self.threads });
        }
        let ids = self.out.len();
        match event.kind {
            EventKind::Acquire { bytes, .. } if bytes > MAX_BYTES => {
                return Err(TraceError::TooLarge { bytes });
            }
            EventKind::Acquire { id, .. } => match self.out.get_mut(id as usize) {
                Some(true) => return Err(TraceError::AcquiredTwice { id }),
                Some(out) => *out = true,
                None if id as usize == ids && id < u32::MAX => self.out.push(true),
                None => {
                    let limit = u32::try_from(ids).unwrap_or(u32::MAX);
                    return Err(TraceError::Sparse { number: id, limit });
                }
            },
            EventKind::Release { id } => match self.out.get_mut(id as usize) {
                Some(out @ true) => *out = false,
                _ => return Err(TraceError::NotOut { id }),
            },
        }
        self.at_ns = event.at_ns;
        self.threads = self.threads.max(event.thread + 1);
        Ok(())
    }
}
