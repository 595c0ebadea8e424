//! A recording in progress: where events of many threads are put, and how they become a trace.
//!
//! # Invariants
//!
//! - R1: an event is put into a shard under its lock, before the call that caused it returns. So
//!   when a thread has got a buffer, wherever it comes from, its acquire is in a shard.
//! - R2: `finish` takes all locks before it reads any shard. With R1, a release that it sees has
//!   its acquire seen too.
//! - R3: numbers in `sequence` order the events: that of a buffer's release is above that of its
//!   acquire.
//! - R4: only events numbered below `max_events` are kept, so what is kept is a prefix.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::Reverse;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bufcore::{Buf, Lease};
use crossbeam_utils::CachePadded;

use crate::format::MAX_TEXT_BYTES;
use crate::recorder::{self, RecordedLease};
use crate::{Event, EventKind, MAX_BYTES, MAX_TIME_NS, Meta, Trace};

/// How many events a recording keeps unless it is told otherwise; 40 bytes each until it ends.
pub const DEFAULT_MAX_EVENTS: u64 = 1 << 20;

/// Threads are spread over this number of shards. More threads than that share them.
const SHARDS: usize = 64;

/// A recording that any number of pools and threads write into. Clones are handles of the same
/// recording.
///
/// [`Recorder`](crate::Recorder) describes how pools get into it.
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
/// Events are noted under locks. Between `fork` and `exec` a child uses no recorded pool, and the
/// global allocator uses none: either may wait for ever.
#[derive(Clone)]
pub struct Recording {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    max_events: u64,
    /// Set once the recording is over, so that nobody goes to the locks any more.
    over: AtomicBool,
    /// The number of the next event (R3); it continues to count above `max_events`.
    sequence: CachePadded<AtomicU64>,
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
}

#[derive(Default)]
struct Shard {
    events: Vec<RawEvent>,
    /// Set by `finish`: nothing is added any more.
    finished: bool,
}

/// An event as it is noted.
#[derive(Clone, Copy)]
struct RawEvent {
    sequence: u64,
    at_ns: u64,
    /// The number of the acquire that began the buffer's life.
    buffer: u64,
    /// Its size, for an acquire; `None` for a release.
    bytes: Option<u64>,
    thread: u32,
}

/// What a buffer keeps of the recording that it is in. Dropping it is the release.
pub(crate) struct Tag {
    recording: Recording,
    buffer: u64,
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

    /// Starts a recording that keeps the first `max_events` events. Pools work on unchanged when it
    /// is full.
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
        let shards = core::array::from_fn(|_| CachePadded::default());
        let sequence = CachePadded::default();
        let over = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { began: Instant::now(), max_events, over, sequence, shards }) }
    }

    /// Returns how many events there have been, those over the limit included.
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
        // ORDER: Relaxed: a number to look at; nothing follows from it.
        self.shared.sequence.load(Ordering::Relaxed)
    }

    /// Returns whether events were left out because the limit was reached.
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

    /// Ends the recording and returns what was recorded. Buffers that are out then stay so in the
    /// trace. A second call returns the same events again.
    ///
    /// Ids and threads are numbered anew, densely. An id is the smallest that is free. A thread
    /// counts from its first event. A thread that starts after another has ended may continue under
    /// its number. A text of `meta` that is too long is shortened.
    ///
    /// Cost: sorts all events; pools that are being recorded wait for as long as it takes to copy
    /// them.
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
        let trace = Trace::new(meta, in_order(self.stop()));
        // R1 to R4 and the numbering keep the rules of traces; a fault here is one of this module.
        trace.unwrap_or_else(|error| unreachable!("a recording is a trace: {error}"))
    }

    /// Ends the recording as [`finish`](Self::finish) does and writes the trace to a file, under
    /// the file's name without its extension. For another name, or a limit of the file's size, use
    /// [`finish`](Self::finish) and [`Trace::save`].
    ///
    /// A recording that is dropped is lost: nothing else writes it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
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

    /// Records a buffer that came from a pool that is not wrapped, or in a way that
    /// [`Recorder`](crate::Recorder) does not know. It counts as acquired now, with its capacity as
    /// its size. The release of the returned buffer, which is the same one, is recorded.
    ///
    /// A part of a buffer that was split before stays unrecorded.
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

    /// Lets no event in any more and copies those that are there (R2).
    fn stop(&self) -> Vec<RawEvent> {
        let mut shards = self.shared.shards.each_ref().map(|shard| lock(shard));
        let mut events = 0;
        for shard in &mut shards {
            shard.finished = true;
            events += shard.events.len();
        }
        // ORDER: Relaxed: a hint; what decides is `finished`, under the locks.
        self.shared.over.store(true, Ordering::Relaxed);
        drop(shards);
        let mut all = Vec::with_capacity(events);
        for shard in &self.shared.shards {
            all.extend_from_slice(&lock(shard).events);
        }
        all.sort_unstable_by_key(|raw| raw.sequence);
        all
    }

    /// Notes an acquire. `None` when the recording is over or full.
    #[inline]
    pub(crate) fn acquired(&self, bytes: usize) -> Option<Tag> {
        let buffer = self.note(None, Some(bytes as u64))?;
        Some(Tag { recording: self.clone(), buffer })
    }

    /// Notes an event and returns its number: an acquire, or the release of what `buffer` began.
    #[inline]
    fn note(&self, buffer: Option<u64>, bytes: Option<u64>) -> Option<u64> {
        let shared = &*self.shared;
        // ORDER: Relaxed: a hint, as in `stop`.
        if shared.over.load(Ordering::Relaxed) {
            return None;
        }
        // ORDER: Relaxed, and still R3: the buffer went from the acquiring to the releasing thread,
        // so the acquire's increment happens before the release's, and all increments of one atomic
        // have one order that agrees with that.
        let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed);
        if sequence >= shared.max_events {
            return None;
        }
        let at_ns = u64::try_from(shared.began.elapsed().as_nanos()).unwrap_or(u64::MAX).min(MAX_TIME_NS);
        let thread = crate::thread_number::get();
        let raw = RawEvent { sequence, at_ns, buffer: buffer.unwrap_or(sequence), bytes, thread };
        let mut shard = lock(&shared.shards[thread as usize % SHARDS]);
        if shard.finished {
            return None;
        }
        shard.events.push(raw);
        Some(sequence)
    }
}

impl Drop for Tag {
    /// Notes the release.
    #[inline]
    fn drop(&mut self) {
        self.recording.note(Some(self.buffer), None);
    }
}

/// Returns the events of a trace: dense numbers, and times that do not go back.
fn in_order(all: Vec<RawEvent>) -> Vec<Event> {
    let mut ids: HashMap<u64, u32> = HashMap::new();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut threads: HashMap<u32, u32> = HashMap::new();
    let mut last_ns = 0;
    let mut events = Vec::with_capacity(all.len());
    for raw in all {
        let kind = match raw.bytes {
            Some(bytes) => {
                // With none free, all that are in use are those below their number.
                let id = free.pop().map_or_else(|| dense(ids.len()), |Reverse(id)| id);
                ids.insert(raw.buffer, id);
                EventKind::Acquire { id, bytes: bytes.min(MAX_BYTES) }
            }
            None => {
                let Some(id) = ids.remove(&raw.buffer) else {
                    debug_assert!(false, "release of {} without its acquire (R2)", raw.buffer);
                    continue;
                };
                free.push(Reverse(id));
                EventKind::Release { id }
            }
        };
        let next = dense(threads.len());
        let thread = *threads.entry(raw.thread).or_insert(next);
        // The clock is read after the number is taken, so two threads may have read it in the other
        // order.
        last_ns = raw.at_ns.max(last_ns);
        events.push(Event { at_ns: last_ns, thread, kind });
    }
    events
}

/// Cuts a text to what a trace can hold.
fn shorten(text: &mut String) {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

/// Returns a count of things that are 40 bytes each, or threads, as a number.
fn dense(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
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
