//! The leak tracker: which buffers are out, where and when each was acquired.

#[cfg(feature = "track")]
pub(crate) use on::Ticket;
#[cfg(feature = "track")]
pub use on::{Outstanding, Tracker};

#[cfg(not(feature = "track"))]
pub(crate) use off::Ticket;
#[cfg(not(feature = "track"))]
pub use off::Tracker;

#[cfg(not(feature = "track"))]
mod off {
    use crate::{Buf, Lease};

    /// Notes every buffer that is out. Does nothing without the `track` feature.
    #[derive(Debug, Default)]
    pub struct Tracker {}

    impl Tracker {
        /// Notes `buf` as acquired by the caller's caller.
        #[inline]
        pub fn attach<L: Lease>(&self, buf: Buf<L>) -> Buf<L> {
            buf
        }
    }

    /// A buffer's place in its tracker. Of no size without the `track` feature.
    #[derive(Debug)]
    pub(crate) struct Ticket;

    impl Ticket {
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
    use core::panic::Location;
    use core::time::Duration;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Instant;

    use crate::{Buf, Lease};

    /// A buffer that is out: who has it, since when.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Outstanding {
        /// The call that acquired it.
        pub location: &'static Location<'static>,
        /// When that was.
        pub since: Instant,
        /// Its capacity in bytes, then.
        pub capacity: usize,
    }

    impl Outstanding {
        /// How long it has been out.
        #[must_use]
        pub fn age(&self) -> Duration {
            self.since.elapsed()
        }
    }

    impl core::fmt::Display for Outstanding {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            write!(f, "{} bytes acquired at {}, {:?} ago", self.capacity, self.location, self.age())
        }
    }

    #[derive(Debug, Default)]
    struct Ledger {
        /// In order of acquisition, since the keys only grow.
        entries: BTreeMap<u64, Outstanding>,
        next: u64,
    }

    /// Notes every buffer that is out. Does nothing without the `track` feature.
    ///
    /// Cost with it: a short lock and a map insertion per acquire and per release.
    #[derive(Debug, Default)]
    pub struct Tracker {
        ledger: Arc<Mutex<Ledger>>,
    }

    fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
        // A panic while the lock is held (the allocator's, in an insertion) leaves the map as it was.
        ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Tracker {
        /// Notes `buf` as acquired by the caller's caller.
        #[track_caller]
        pub fn attach<L: Lease>(&self, mut buf: Buf<L>) -> Buf<L> {
            let entry =
                Outstanding { location: Location::caller(), since: Instant::now(), capacity: buf.capacity() };
            let mut ledger = lock(&self.ledger);
            let id = ledger.next;
            ledger.next += 1;
            ledger.entries.insert(id, entry);
            drop(ledger);
            *buf.ticket_mut() = Ticket { place: Some((Arc::clone(&self.ledger), id)) };
            buf
        }

        /// What is out now, longest first.
        #[must_use]
        pub fn outstanding(&self) -> Vec<Outstanding> {
            lock(&self.ledger).entries.values().copied().collect()
        }
    }

    /// A buffer's place in its tracker.
    #[derive(Debug)]
    pub(crate) struct Ticket {
        place: Option<(Arc<Mutex<Ledger>>, u64)>,
    }

    impl Ticket {
        #[inline]
        pub(crate) fn none() -> Self {
            Self { place: None }
        }
    }

    impl Drop for Ticket {
        fn drop(&mut self) {
            if let Some((ledger, id)) = self.place.take() {
                lock(&ledger).entries.remove(&id);
            }
        }
    }
}
