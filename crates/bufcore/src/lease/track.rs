//! The leak tracker: which buffers are out, where and when each was acquired.

#[cfg(feature = "track")]
pub(crate) use on::TrackId;
#[cfg(feature = "track")]
pub use on::{Outstanding, Tracker};

#[cfg(not(feature = "track"))]
pub(crate) use off::TrackId;
#[cfg(not(feature = "track"))]
pub use off::Tracker;

#[cfg(not(feature = "track"))]
mod off {
    /// Records every buffer in use. Without the `track` feature it does nothing.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::author::Tracker;
    /// use bufcore::{Buf, HeapLease, HeapPool};
    ///
    /// /// A pool notes each buffer that it hands out.
    /// #[derive(Default)]
    /// struct Pool {
    ///     tracker: Tracker,
    /// }
    ///
    /// impl Pool {
    ///     #[cfg_attr(feature = "track", track_caller)]
    ///     fn acquire(&self) -> Buf<HeapLease> {
    ///         let buf = HeapPool::new().acquire(64).expect("room");
    ///         self.tracker.attach(buf)
    ///     }
    /// }
    ///
    /// let pool = Pool::default();
    /// let buf = pool.acquire();
    /// # #[cfg(feature = "track")]
    /// assert_eq!(pool.tracker.outstanding().len(), 1);
    /// drop(buf);
    /// # }
    /// ```
    #[derive(Debug, Default)]
    pub struct Tracker {}

    /// A buffer's place in its tracker. Of no size without the `track` feature.
    #[derive(Debug)]
    pub(crate) struct TrackId;

    impl TrackId {
        #[inline]
        pub(crate) fn none() -> Self {
            Self
        }
    }
}

#[cfg(feature = "track")]
mod on {
    use alloc::collections::BTreeMap;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::fmt;
    use core::panic::Location;
    use core::time::Duration;
    use std::time::Instant;

    use crate::sync::{Mutex, lock};

    /// Describes a buffer in use: where it was acquired, and when.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut pool = HeapPool::new();
    /// let leaked = pool.acquire(1500)?;
    /// for buffer in pool.outstanding() {
    ///     println!("{buffer:?}, out for {:?}", buffer.age());
    /// }
    /// assert_eq!(pool.outstanding().len(), 1);
    /// # drop(leaked);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Outstanding {
        /// The call that acquired it.
        pub location: &'static Location<'static>,
        /// When that was.
        pub since: Instant,
        /// The requested capacity in bytes.
        pub capacity: usize,
    }

    impl Outstanding {
        /// Returns how long the buffer has been in use.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use bufcore::HeapPool;
        ///
        /// let mut pool = HeapPool::new();
        /// let _held = pool.acquire(1500)?;
        /// // A watchdog lists buffers that have been in use for too long.
        /// let limit = Duration::from_secs(60);
        /// assert!(pool.outstanding().iter().all(|buf| buf.age() < limit));
        /// # Ok::<(), bufcore::Error>(())
        /// ```
        #[must_use]
        pub fn age(&self) -> Duration {
            self.since.elapsed()
        }
    }

    impl fmt::Display for Outstanding {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} bytes acquired at {}, {:?} ago", self.capacity, self.location, self.age())
        }
    }

    /// The buffers in use, by number, in the order of acquisition.
    #[derive(Debug, Default)]
    struct Ledger {
        entries: BTreeMap<usize, Outstanding>,
        next: usize,
    }

    /// Records every buffer in use. Without the `track` feature it does nothing.
    ///
    /// Cost with it: a short lock per acquire and per release, and an occasional allocation under
    /// it.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::author::Tracker;
    /// use bufcore::{Buf, HeapLease, HeapPool};
    ///
    /// /// A pool notes each buffer that it hands out.
    /// #[derive(Default)]
    /// struct Pool {
    ///     tracker: Tracker,
    /// }
    ///
    /// impl Pool {
    ///     #[cfg_attr(feature = "track", track_caller)]
    ///     fn acquire(&self) -> Buf<HeapLease> {
    ///         let buf = HeapPool::new().acquire(64).expect("room");
    ///         self.tracker.attach(buf)
    ///     }
    /// }
    ///
    /// let pool = Pool::default();
    /// let buf = pool.acquire();
    /// # #[cfg(feature = "track")]
    /// assert_eq!(pool.tracker.outstanding().len(), 1);
    /// drop(buf);
    /// # }
    /// ```
    #[derive(Default)]
    pub struct Tracker {
        ledger: Arc<Mutex<Ledger>>,
    }

    impl Tracker {
        #[track_caller]
        pub(crate) fn note(&self, capacity: usize) -> TrackId {
            let entry = Outstanding { location: Location::caller(), since: Instant::now(), capacity };
            let mut ledger = lock(&self.ledger);
            // With 32 bits the numbers start over.
            while ledger.entries.contains_key(&ledger.next) {
                ledger.next = ledger.next.wrapping_add(1);
            }
            let number = ledger.next;
            ledger.next = number.wrapping_add(1);
            ledger.entries.insert(number, entry);
            TrackId { place: Some((Arc::clone(&self.ledger), number)) }
        }

        /// Lists the buffers in use, longest first.
        #[must_use]
        pub fn outstanding(&self) -> Vec<Outstanding> {
            let mut found: Vec<_> = lock(&self.ledger).entries.values().copied().collect();
            found.sort_by_key(|entry| entry.since);
            found
        }
    }

    impl fmt::Debug for Tracker {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let outstanding = lock(&self.ledger).entries.len();
            f.debug_struct("Tracker").field("outstanding", &outstanding).finish()
        }
    }

    /// A buffer's place in its tracker.
    pub(crate) struct TrackId {
        place: Option<(Arc<Mutex<Ledger>>, usize)>,
    }

    impl TrackId {
        #[inline]
        pub(crate) fn none() -> Self {
            Self { place: None }
        }
    }

    impl Drop for TrackId {
        fn drop(&mut self) {
            if let Some((ledger, number)) = self.place.take() {
                lock(&ledger).entries.remove(&number);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::HeapPool;

        #[test]
        fn entries_are_listed_in_order_and_removed() {
            let mut pool = HeapPool::new();
            let mut bufs: Vec<_> = (0..1000).map(|bytes| pool.acquire(bytes).expect("room")).collect();
            assert!(pool.outstanding().iter().map(|entry| entry.capacity).eq(0..1000));
            for index in (0..500).rev() {
                drop(bufs.swap_remove(index * 2));
            }
            bufs.extend((1000..1500).map(|bytes| pool.acquire(bytes).expect("room")));
            let listed = pool.outstanding();
            assert_eq!(listed.len(), 1000);
            assert!(listed.is_sorted_by_key(|entry| entry.since), "longest first");
            assert!(listed[500..].iter().map(|entry| entry.capacity).eq(1000..1500));
            drop(bufs);
            assert!(pool.outstanding().is_empty());
        }

        #[test]
        fn numbers_start_over() {
            let tracker = Tracker::default();
            let first = tracker.note(1);
            lock(&tracker.ledger).next = usize::MAX;
            let others = [tracker.note(2), tracker.note(3)];
            assert!(tracker.outstanding().iter().map(|entry| entry.capacity).eq(1..4));
            drop(first);
            assert!(tracker.outstanding().iter().map(|entry| entry.capacity).eq(2..4));
            drop(others);
        }
    }
}
