//! Counts what a pool's looks put aside, and how much of it requests take back.

use core::time::Duration;

/// The least that a request takes of what is parked, in bytes.
const LEAST_BYTES: usize = 16 << 10;

/// It grows by a fraction, one over this number, of what was taken since the last look. With steps
/// so small, what is used between two looks is nearly as much as is needed, and nearly the same
/// each time.
const GROWTH: usize = 8;

/// A fraction, one over this number, of what was taken since the last look stays beside it, at the
/// place that is taken next: traffic is not the same to the byte from look to look.
const MARGIN: usize = 4;

/// How many requests do not look at what is parked after one that found too little there.
const SKIPS: u32 = 64;

/// Counts the free memory that a pool has parked, and times the looks at it: for its `trim_idle`.
///
/// Requests leave no trace of when they were. So a look of `trim_idle` parks the free memory of the
/// pool, in parts, and a request takes of it only what it needs. Memory that is still parked at the
/// next look was left over at every moment since, and its pages go back to the system.
///
/// This counts the parts and the bytes that were taken. The pool knows where they are.
///
/// Without the feature `std` there is no clock, and a look is never due.
///
/// ```
/// use std::time::Duration;
///
/// use bufcore::strategy::Parking;
///
/// let mut parking = Parking::new();
/// # #[cfg(feature = "std")] {
/// assert!(parking.is_due(Duration::from_secs(3600))); // the first look
/// assert!(!parking.is_due(Duration::from_secs(3600)));
/// assert!(parking.is_due(Duration::ZERO));
/// # }
/// parking.begin();
/// parking.park(); // 1 MiB that is free, for example
/// // A request takes what it needs, and some more.
/// let bytes = parking.step().max(9000);
/// parking.note_taken(bytes);
/// // The next look leaves some pages beside those that were taken.
/// assert!(parking.margin() > 0 && parking.margin() < bytes);
/// ```
#[derive(Debug, Default)]
pub struct Parking {
    /// How many parts are parked.
    parts: usize,
    /// Bytes that were taken of them since the last look.
    taken: usize,
    /// A request of this size found too little parked.
    refused: usize,
    /// How many of at least that size do not look.
    skips: u32,
    /// When the last look was.
    #[cfg(feature = "std")]
    last: Option<std::time::Instant>,
}

impl Parking {
    /// The bytes that a new pool uses first, if it has more: they stay in the processor's caches.
    pub const FIRST_BYTES: usize = LEAST_BYTES;

    /// How many live buffers at the front of its memory a request of the pool looks behind before
    /// it takes what is parked in front of it.
    pub const PROBES_AT_FRONT: usize = 8;

    /// Makes one for a pool that nobody looked at.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            parts: 0,
            taken: 0,
            refused: 0,
            skips: 0,
            #[cfg(feature = "std")]
            last: None,
        }
    }

    /// Returns whether the last look was `age` ago or more, or there was none. A look that is due
    /// is the last one from here on.
    pub fn is_due(&mut self, age: Duration) -> bool {
        #[cfg(feature = "std")]
        {
            let now = std::time::Instant::now();
            if self.last.is_some_and(|last| now.duration_since(last) < age) {
                return false;
            }
            self.last = Some(now);
            true
        }
        #[cfg(not(feature = "std"))]
        {
            let _ = age;
            false
        }
    }

    /// Returns how many bytes of what is still parked keep their pages at a look: a quarter of what
    /// was taken since the last one.
    #[must_use]
    pub const fn margin(&self) -> usize {
        self.taken / MARGIN
    }

    /// Notes that a look parks what is free from here on: nothing of it was taken or refused yet.
    pub fn begin(&mut self) {
        (self.taken, self.skips) = (0, 0);
    }

    /// Notes that a part more is parked.
    pub fn park(&mut self) {
        self.parts += 1;
    }

    /// Notes that a part less is parked.
    ///
    /// # Panics
    ///
    /// When no part is.
    pub fn unpark(&mut self) {
        assert!(self.parts != 0, "a part is parked");
        self.parts -= 1;
    }

    /// Returns how many parts are parked.
    #[must_use]
    #[inline]
    pub const fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the least that a request takes of a part, in bytes: 16 KiB, or an eighth of what was
    /// taken since the last look. A smaller part is taken whole.
    #[must_use]
    pub fn step(&self) -> usize {
        LEAST_BYTES.max(self.taken / GROWTH)
    }

    /// Notes that a request took this number of bytes of what is parked.
    pub fn note_taken(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
    }

    /// Notes that a request of this size found too little parked, in units of the pool's own. The
    /// next 64 of its size or more [leave that look out](Self::skips).
    pub fn refuse(&mut self, size: usize) {
        (self.refused, self.skips) = (size, SKIPS);
    }

    /// Returns whether a request of this size leaves out the look at what is parked. One that does
    /// is counted.
    pub fn skips(&mut self, size: usize) -> bool {
        let skips = self.skips > 0 && size >= self.refused;
        if skips {
            self.skips -= 1;
        }
        skips
    }
}
