//! A recording in progress: where events of many threads are put.
//!
//! # Invariants
//!
//! - R1: an event is put into the log under its lock, before the call that caused it returns. A
//!   buffer's release comes after its acquire, so it is behind it in the log.
//! - R2: an id is taken for an acquire that is kept, and free again from the release that is kept.
//! - R3: only the first `max_events` events are kept, so what is kept is a prefix.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::Reverse;
use core::fmt;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bufcore::{Buf, Lease};

use crate::format::MAX_TEXT_BYTES;
use crate::recorder::{self, RecordedLease};
use crate::thread_number;
use crate::{Event, EventKind, MAX_BYTES, MAX_TIME_NS, Meta, Trace};

/// The default number of events that a recording keeps, of 32 bytes each.
pub const DEFAULT_MAX_EVENTS: u64 = 1 << 20;

/// A recording to which any number of pools and threads add events. Clones are handles of the same
/// recording.
///
/// [`Recorder`](crate::Recorder) describes how to record a pool.
///
/// ```
/// use bufcore::BufferPool;
/// use bufshard::ShardPool;
/// use bufslot::SlotPool;
/// use buftrace::{Meta, Recorder, Recording};
///
/// let recording = Recording::new();
/// let mut headers = Recorder::new(SlotPool::new(64 << 10, 8)?, &recording);
/// let bodies = Recorder::new(ShardPool::new()?, &recording);
/// drop((headers.acquire(200)?, bodies.acquire(16 << 10)?));
/// let trace = recording.finish(Meta::new("both pools"));
/// assert_eq!(trace.summary().total_bytes, 200 + (16 << 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Limits
///
/// Events are recorded under locks. Between `fork` and `exec` a child process must not use a
/// recorded pool, nor may its global allocator: either may wait forever.
#[derive(Clone)]
pub struct Recording {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    max_events: u64,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    /// How many there were, those over the limit included.
    count: u64,
    /// Set by `finish`: nothing is added any more.
    finished: bool,
    /// All ids below were given out.
    ids: u32,
    /// Those of them that are free.
    free: BinaryHeap<Reverse<u32>>,
    /// By [`thread_number`]: the number in this recording.
    threads: HashMap<u32, u32>,
}

impl Log {
    fn take_id(&mut self) -> u32 {
        if let Some(Reverse(id)) = self.free.pop() {
            return id;
        }
        self.ids += 1;
        self.ids - 1
    }
}

/// What a buffer keeps of the recording that it is in. Dropping it is the release.
pub(crate) struct Tag {
    recording: Recording,
    id: u32,
}

impl Recording {
    /// Starts a recording of up to [`DEFAULT_MAX_EVENTS`]. Its time begins now.
    ///
    /// ```
    /// use buftrace::{Meta, Recording};
    ///
    /// let recording = Recording::new();
    /// let trace = recording.finish(Meta::new("nothing yet"));
    /// assert!(trace.events().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_events(DEFAULT_MAX_EVENTS)
    }

    /// Starts a recording that keeps the first `max_events` events. Pools continue unchanged when
    /// it is full.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Recorder, Recording};
    ///
    /// let recording = Recording::with_max_events(1);
    /// let mut pool = Recorder::new(HeapPool::new(), &recording);
    /// drop(pool.acquire(64)?); // two events
    /// assert!(recording.events() == 2 && recording.is_cut());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_max_events(max_events: u64) -> Self {
        Self { shared: Arc::new(Shared { began: Instant::now(), max_events, log: Mutex::default() }) }
    }

    /// Returns the number of events, including those over the limit.
    ///
    /// ```
    /// use bufcore::HeapPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let mut pool = Recorder::new(HeapPool::new(), &recording);
    /// let buf = bufcore::BufferPool::acquire(&mut pool, 64)?;
    /// assert_eq!(recording.events(), 1);
    /// drop(buf);
    /// assert_eq!(recording.events(), 2);
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    #[must_use]
    pub fn events(&self) -> u64 {
        self.lock().count
    }

    /// Returns whether events were dropped because the limit was reached.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Meta, Recorder, Recording};
    ///
    /// let recording = Recording::with_max_events(10);
    /// let mut pool = Recorder::new(HeapPool::new(), &recording);
    /// while !recording.is_cut() {
    ///     drop(pool.acquire(64)?); // the program runs until enough is recorded
    /// }
    /// assert_eq!(recording.finish(Meta::new("a sample")).events().len(), 10);
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.events() > self.shared.max_events
    }

    /// Ends the recording and returns its trace. Buffers that are in use then remain so in the
    /// trace. A second call returns the same events again.
    ///
    /// Ids and threads are dense numbers. An id is the smallest free number. A thread is numbered
    /// at its first event. A thread that starts after another has exited may get its number. A text
    /// of `meta` that is too long is shortened.
    ///
    /// Cost: a copy of all events, during which recorded pools wait.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Meta, Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let mut pool = Recorder::new(HeapPool::new(), &recording);
    /// let held = pool.acquire(1500)?;
    /// drop(pool.acquire(64)?);
    /// let trace = recording.finish(Meta::new("app"));
    /// assert_eq!((trace.events().len(), trace.out_at_end().len()), (3, 1));
    /// # drop(held);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn finish(&self, mut meta: Meta) -> Trace {
        meta.cut |= self.is_cut();
        for text in [&mut meta.name, &mut meta.made_by, &mut meta.date] {
            shorten(text);
        }
        let events = {
            let mut log = self.lock();
            log.finished = true;
            log.events.clone()
        };
        let trace = Trace::new(meta, events);
        // R1 to R3 keep the rules of traces; a fault here is one of this module.
        trace.unwrap_or_else(|error| unreachable!("a recording is a trace: {error}"))
    }

    /// Ends the recording as [`finish`](Self::finish) does and writes the trace to a file; its name
    /// is the file's name without the extension. For another name, or a limit on the file size, use
    /// [`finish`](Self::finish) and [`Trace::save`].
    ///
    /// A recording that is dropped without a call is lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    ///
    /// ```
    /// use buftrace::{Recording, Trace};
    ///
    /// let recording = Recording::new();
    /// # let folder = std::env::temp_dir().join(format!("recording-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let path = folder.join("app.buftrace");
    /// recording.save(&path)?;
    /// assert_eq!(Trace::load(&path)?.meta().name, "app");
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        self.finish(Meta::new(name)).save(path)
    }

    /// Records a buffer of a pool that is not wrapped, or of a request that
    /// [`Recorder`](crate::Recorder) does not have. It counts as acquired now, with its capacity as
    /// its size. The release of the returned buffer, which is the same one, is recorded.
    ///
    /// A part of an already split buffer is not recorded.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::Recording;
    ///
    /// let recording = Recording::new();
    /// let buf = recording.record(HeapPool::new().acquire(1500)?);
    /// drop(buf);
    /// assert_eq!(recording.events(), 2);
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    pub fn record<L: Lease>(&self, buf: Buf<L>) -> Buf<RecordedLease<L>> {
        let bytes = buf.capacity();
        recorder::tagged(self, buf, bytes)
    }

    /// Notes an acquire. `None` when the recording is over or full.
    #[inline]
    pub(crate) fn acquired(&self, bytes: usize) -> Option<Tag> {
        let bytes = (bytes as u64).min(MAX_BYTES);
        let kind = self.note(|log| EventKind::Acquire { id: log.take_id(), bytes })?;
        Some(Tag { recording: self.clone(), id: kind.id() })
    }

    /// Notes an event, if it is kept.
    fn note(&self, kind: impl FnOnce(&mut Log) -> EventKind) -> Option<EventKind> {
        let thread = thread_number::get();
        let mut log = self.lock();
        if log.finished {
            return None;
        }
        log.count += 1;
        if log.count > self.shared.max_events {
            return None;
        }
        let kind = kind(&mut log);
        // Under the lock, so times do not go back.
        let at_ns = u64::try_from(self.shared.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let next = log.threads.len() as u32;
        let thread = *log.threads.entry(thread).or_insert(next);
        log.events.push(Event { at_ns: at_ns.min(MAX_TIME_NS), thread, kind });
        Some(kind)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tag {
    /// Notes the release.
    #[inline]
    fn drop(&mut self) {
        let id = self.id;
        self.recording.note(|log| {
            log.free.push(Reverse(id));
            EventKind::Release { id }
        });
    }
}

/// Cuts a text to what a trace can hold.
fn shorten(text: &mut String) {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

impl Default for Recording {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("events", &self.events()).finish_non_exhaustive()
    }
}
