//! The numbers of a trace, for a person to read.

use core::fmt;

use crate::{Event, EventKind, Meta, Trace};

/// Into how many equal parts of its time a trace is cut for [`Summary::live_bytes`].
const TIME_PARTS: usize = 64;

/// The numbers of a [`Trace`]. Its `Display` is a table to read.
///
/// ```
/// use bufcore::{BufferPool, HeapPool};
/// use buftrace::{Meta, Recorder, Recording};
///
/// let recording = Recording::new();
/// let mut pool = Recorder::new(HeapPool::new(), &recording);
/// let header = pool.acquire(200)?;
/// drop(pool.acquire(1500)?);
/// drop(header);
///
/// let summary = recording.finish(Meta::new("a request")).summary();
/// assert_eq!((summary.acquires, summary.releases), (2, 2));
/// assert_eq!((summary.max_live, summary.max_live_bytes), (2, 1700));
/// assert!(summary.to_string().contains("a request"));
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The header of the trace.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub meta: Meta,
    /// The time from the start of the recording to the last event, in nanoseconds.
    pub duration_ns: u64,
    /// Threads that acquired or released buffers.
    pub threads: usize,
    /// Buffers acquired.
    pub acquires: usize,
    /// How many of them were released.
    pub releases: usize,
    /// How many releases were on a thread other than the acquiring one.
    pub cross_thread_releases: usize,
    /// Buffers in use after the last event.
    pub out_at_end: usize,
    /// Total bytes acquired. Saturates.
    pub total_bytes: u64,
    /// The most buffers in use at once.
    pub max_live: usize,
    /// The most bytes in use at once. Saturates.
    pub max_live_bytes: u64,
    /// Different sizes.
    pub distinct_sizes: usize,
    /// The sizes at the 50th, 90th, 99th and 100th percentile of the acquires.
    pub size_quantiles: [u64; 4],
    /// Acquires by size, smallest class first, without the empty classes.
    pub sizes: Vec<SizeClass>,
    /// How long buffers were in use.
    pub lifetimes: Lifetimes,
    /// The most bytes in use at once, for each 64th of the time.
    pub live_bytes: Vec<u64>,
}

/// The acquires of more than half of `up_to` and at most `up_to` bytes.
///
/// ```
/// use bufcore::{BufferPool, HeapPool};
/// use buftrace::{Meta, Recorder, Recording, SizeClass};
///
/// let recording = Recording::new();
/// let mut pool = Recorder::new(HeapPool::new(), &recording);
/// for bytes in [1500, 1460, 64] {
///     drop(pool.acquire(bytes)?);
/// }
/// let sizes = recording.finish(Meta::new("packets")).summary().sizes;
/// let class = |up_to, acquires| SizeClass { up_to, acquires };
/// assert_eq!(sizes, [class(64, 1), class(2048, 2)]);
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass {
    /// A power of two, in bytes; 0 for buffers of no bytes, and `u64::MAX` above all powers of two.
    pub up_to: u64,
    /// How many.
    pub acquires: usize,
}

/// The quantiles of the released buffers' time in use, in nanoseconds.
///
/// ```
/// use buftrace::{Event, EventKind, Meta, Trace};
///
/// // Nine buffers are in use for 10 ns, and one for 500.
/// let mut events = Vec::new();
/// for (start, out) in (0..10).map(|n| (n * 1000, if n == 9 { 500 } else { 10 })) {
///     let acquire = EventKind::Acquire { id: 0, bytes: 64 };
///     events.push(Event { at_ns: start, thread: 0, kind: acquire });
///     events.push(Event { at_ns: start + out, thread: 0, kind: EventKind::Release { id: 0 } });
/// }
/// let lifetimes = Trace::new(Meta::new("one is slow"), events)?.summary().lifetimes;
/// assert_eq!((lifetimes.p50_ns, lifetimes.p90_ns, lifetimes.p99_ns), (10, 10, 500));
/// # Ok::<(), buftrace::TraceError>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// The median.
    pub p50_ns: u64,
    /// 90 %.
    pub p90_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p999_ns: u64,
    /// All.
    pub max_ns: u64,
}

/// What is counted while the events go by.
#[derive(Default)]
struct Sums {
    /// By id: the last acquire.
    lives: Vec<Life>,
    /// Of all acquires.
    sizes: Vec<u64>,
    /// Of all releases.
    lifetimes: Vec<u64>,
    cross_thread_releases: usize,
    /// Buffers in use at the end.
    live: usize,
    /// Their bytes.
    live_bytes: u128,
    max_live: usize,
    parts: Parts,
}

#[derive(Clone, Copy, Default)]
struct Life {
    bytes: u64,
    at_ns: u64,
    thread: u32,
}

impl Sums {
    /// Counts the next event of the trace.
    fn take(&mut self, event: &Event) {
        match event.kind {
            EventKind::Acquire { id, bytes } => {
                self.live += 1;
                self.max_live = self.live.max(self.max_live);
                self.live_bytes += u128::from(bytes);
                self.sizes.push(bytes);
                self.lives[id as usize] = Life { bytes, at_ns: event.at_ns, thread: event.thread };
            }
            EventKind::Release { id } => {
                let life = self.lives[id as usize];
                self.live -= 1;
                self.live_bytes -= u128::from(life.bytes);
                self.lifetimes.push(event.at_ns - life.at_ns);
                self.cross_thread_releases += usize::from(life.thread != event.thread);
            }
        }
        self.parts.note(event.at_ns, u64::try_from(self.live_bytes).unwrap_or(u64::MAX));
    }
}

impl Trace {
    /// Computes the numbers of the trace.
    ///
    /// Cost: sorts sizes and lifetimes.
    ///
    /// ```
    /// use buftrace::{Event, EventKind, Meta, Trace};
    ///
    /// let events = vec![
    ///     Event { at_ns: 0, thread: 0, kind: EventKind::Acquire { id: 0, bytes: 1500 } },
    ///     Event { at_ns: 900, thread: 0, kind: EventKind::Release { id: 0 } },
    /// ];
    /// let trace = Trace::new(Meta::new("one packet"), events)?;
    /// let summary = trace.summary();
    /// assert_eq!((summary.acquires, summary.max_live_bytes), (1, 1500));
    /// println!("{summary}"); // a table
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (lives, parts) = (vec![Life::default(); self.ids()], Parts::new(self.duration_ns()));
        let mut sums = Sums { lives, parts, ..Sums::default() };
        for event in self.events() {
            sums.take(event);
        }
        let Sums { mut sizes, mut lifetimes, .. } = sums;
        sizes.sort_unstable();
        lifetimes.sort_unstable();
        let [p50_ns, p90_ns, p99_ns, p999_ns, max_ns] =
            [500, 900, 990, 999, 1000].map(|permille| quantile(&lifetimes, permille));
        let live_bytes = sums.parts.finish();
        Summary {
            meta: self.meta().clone(),
            duration_ns: self.duration_ns(),
            threads: self.threads(),
            acquires: sizes.len(),
            releases: lifetimes.len(),
            cross_thread_releases: sums.cross_thread_releases,
            out_at_end: sums.live,
            total_bytes: sizes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            max_live: sums.max_live,
            max_live_bytes: live_bytes.iter().copied().max().unwrap_or(0),
            distinct_sizes: sizes.chunk_by(|a, b| a == b).count(),
            size_quantiles: [500, 900, 990, 1000].map(|permille| quantile(&sizes, permille)),
            sizes: sizes
                .chunk_by(|a, b| class_of(*a) == class_of(*b))
                .map(|class| SizeClass { up_to: class_of(class[0]), acquires: class.len() })
                .collect(),
            lifetimes: Lifetimes { p50_ns, p90_ns, p99_ns, p999_ns, max_ns },
            live_bytes,
        }
    }
}

/// Returns the smallest of `sorted` that `permille` of them do not exceed; 0 of none.
fn quantile(sorted: &[u64], permille: usize) -> u64 {
    sorted.get(rank(sorted.len(), permille).saturating_sub(1)).copied().unwrap_or(0)
}

/// Returns how many of `len` come to `permille` of them, at most 1000: rounded up.
fn rank(len: usize, permille: usize) -> usize {
    // Not `len * permille`, for which 32 bits are too few from four million on.
    len / 1000 * permille + (len % 1000 * permille).div_ceil(1000)
}

fn class_of(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { bytes.checked_next_power_of_two().unwrap_or(u64::MAX) }
}

/// The highest level in each part of the time.
#[derive(Default)]
struct Parts {
    width_ns: u64,
    highest: Vec<u64>,
    level: u64,
}

impl Parts {
    fn new(duration_ns: u64) -> Self {
        Self { width_ns: duration_ns / TIME_PARTS as u64 + 1, highest: vec![0], level: 0 }
    }

    fn note(&mut self, at_ns: u64, level: u64) {
        // Below TIME_PARTS: `at_ns` is at most the duration, which is below as many widths.
        while (self.highest.len() as u64) <= at_ns / self.width_ns {
            self.highest.push(self.level);
        }
        self.level = level;
        if let Some(highest) = self.highest.last_mut() {
            *highest = level.max(*highest);
        }
    }

    fn finish(mut self) -> Vec<u64> {
        self.highest.resize(TIME_PARTS, self.level);
        self.highest
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.acquires as f64 / (self.duration_ns.max(1) as f64 / 1e9);
        let [p50, p90, p99, max] = self.size_quantiles.map(Bytes);
        let life = &self.lifetimes;
        writeln!(
            f,
            "{:<22}{}{}",
            "trace",
            self.meta.name,
            if self.meta.cut { " (without a regular end)" } else { "" }
        )?;
        writeln!(f, "{:<22}{} ({})", "made by", self.meta.made_by, self.meta.date)?;
        writeln!(f, "{:<22}{}", "duration", Time(self.duration_ns))?;
        writeln!(f, "{:<22}{}", "threads", self.threads)?;
        writeln!(f, "{:<22}{} ({rate:.0} a second)", "acquires", self.acquires)?;
        writeln!(f, "{:<22}{}, {} out at the end", "releases", self.releases, self.out_at_end)?;
        let share = 100.0 * self.cross_thread_releases as f64 / self.releases.max(1) as f64;
        writeln!(f, "{:<22}{} ({share:.1} %)", "on another thread", self.cross_thread_releases)?;
        writeln!(f, "{:<22}{}", "bytes acquired", Bytes(self.total_bytes))?;
        writeln!(f, "{:<22}{} buffers, {}", "most out at once", self.max_live, Bytes(self.max_live_bytes))?;
        writeln!(
            f,
            "{:<22}{} different; p50 {p50}, p90 {p90}, p99 {p99}, max {max}",
            "sizes", self.distinct_sizes
        )?;
        writeln!(
            f,
            "{:<22}p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            "lifetimes",
            Time(life.p50_ns),
            Time(life.p90_ns),
            Time(life.p99_ns),
            Time(life.p999_ns),
            Time(life.max_ns)
        )?;
        writeln!(f, "\n{:>12}  {:>9}  {:>6}", "size up to", "acquires", "share")?;
        for class in &self.sizes {
            let share = 100.0 * class.acquires as f64 / self.acquires as f64;
            let bar = "#".repeat((share / 2.0).ceil() as usize);
            writeln!(
                f,
                "{:>12}  {:>9}  {share:>5.1}%  {bar}",
                Bytes(class.up_to).to_string(),
                class.acquires
            )?;
        }
        let top = self.live_bytes.iter().copied().max().unwrap_or(0);
        let line: String = self.live_bytes.iter().map(|bytes| bar(*bytes, top)).collect();
        writeln!(f, "\nbytes out over time, up to {}:\n|{line}|", Bytes(top))
    }
}

fn bar(bytes: u64, top: u64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = u128::from(bytes) * 8;
    BARS[usize::try_from(height.div_ceil(u128::from(top.max(1)))).map_or(8, |height| height.min(8))]
}

struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let power = (self.0.ilog2() / 10) as usize;
        let value = self.0 as f64 / (1_u64 << (10 * power)) as f64;
        let digits = if value.fract() == 0.0 { 0 } else { 1 };
        write!(f, "{value:.digits$} {}", UNITS[power - 1])
    }
}

struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ ..1_000 => write!(f, "{ns} ns"),
            ns @ ..1_000_000 => write!(f, "{:.1} us", ns as f64 / 1e3),
            ns @ ..1_000_000_000 => write!(f, "{:.1} ms", ns as f64 / 1e6),
            ns => write!(f, "{:.1} s", ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn ranks_of_any_number() {
        for len in [0, 1, 2, 999, 1000, 1001, 4_300_000] {
            for permille in [0, 500, 900, 990, 999, 1000] {
                assert_eq!(rank(len, permille), (len * permille).div_ceil(1000), "{permille} of {len}");
            }
        }
        assert_eq!((rank(usize::MAX, 1000), rank(usize::MAX, 500)), (usize::MAX, usize::MAX / 2 + 1));
    }
}
