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

    use crate::{Buf, Lease};

    /// Notes every buffer that is out. Without the `track` feature it does nothing.
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

    impl Tracker {
        /// Notes `buf` as acquired by the caller's caller.
        #[inline]
        pub fn attach<L: Lease>(&self, buf: Buf<L>) -> Buf<L> {
            buf
        }
    }

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
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::fmt::{self, Write};
    use core::mem;
    use core::panic::Location;
    use core::time::Duration;
    use std::time::Instant;

    use crate::sync::{Mutex, lock};
    use crate::{Buf, Lease};

    /// Describes a buffer that is out: where it was acquired, and when.
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
        /// Its capacity in bytes, then.
        pub capacity: usize,
    }

    impl Outstanding {
        /// Returns how long the buffer has been out.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use bufcore::HeapPool;
        ///
        /// let mut pool = HeapPool::new();
        /// let _held = pool.acquire(1500)?;
        /// // A watchdog looks for buffers that are out for too long.
        /// let limit = Duration::from_secs(60);
        /// assert!(pool.outstanding().iter().all(|buf| buf.age() < limit));
        /// # Ok::<(), bufcore::Error>(())
        /// ```
        #[must_use]
        pub fn age(&self) -> Duration {
            self.since.elapsed()
        }

        /// Returns what is held by place, as folded stacks: a line for each place where buffers
        /// were acquired, the most first. The number is the sum of bytes times milliseconds until
        /// now.
        ///
        /// Tools for flamegraphs read such lines. A buffer that is never released holds more and
        /// more, so a leak becomes the first line.
        ///
        /// ```
        /// use bufcore::{HeapPool, Outstanding};
        ///
        /// let mut pool = HeapPool::new();
        /// let leaked = pool.acquire(1_000_000)?;
        /// std::thread::sleep(std::time::Duration::from_millis(10));
        /// let young = pool.acquire(1000)?;
        /// let folded = Outstanding::folded(&pool.outstanding());
        /// let first = folded.lines().next().expect("two places");
        /// let (place, held) = first.rsplit_once(' ').expect("a place and a number");
        /// assert!(place.contains(".rs:") && held.parse::<u64>()? >= 10_000_000);
        /// # drop((leaked, young));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[must_use]
        pub fn folded(outstanding: &[Self]) -> String {
            let now = Instant::now();
            let held = |entry: &Self| {
                entry.capacity as u128 * now.saturating_duration_since(entry.since).as_millis()
            };
            let mut entries: Vec<_> = outstanding.iter().map(|entry| (entry.location, held(entry))).collect();
            let place = |location: &Location<'_>| (location.line(), location.column());
            entries.sort_unstable_by(|(one, _), (other, _)| {
                one.file().cmp(other.file()).then(place(one).cmp(&place(other)))
            });
            // Several calls of one line may have locations of their own.
            entries.dedup_by(|(one, held), (other, sum)| {
                let is_same = one == other;
                *sum += if is_same { *held } else { 0 };
                is_same
            });
            entries.sort_by_key(|&(_, held)| core::cmp::Reverse(held));
            let mut lines = String::new();
            for (location, held) in entries {
                // A string takes all of it.
                let _ = writeln!(lines, "{location} {held}");
            }
            lines
        }
    }

    impl fmt::Display for Outstanding {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} bytes acquired at {}, {:?} ago", self.capacity, self.location, self.age())
        }
    }

    /// A list shorter than this is not given back when it is empty.
    const KEPT: usize = 64;

    /// One line of the list.
    #[derive(Debug, Clone, Copy)]
    enum Line {
        /// A buffer that is out; the number is its place in the order of acquisition.
        Used(u64, Outstanding),
        /// The line that was unused before this one was.
        Unused(Option<usize>),
    }

    /// Where an entry is, and the last digits of its number.
    #[derive(Debug, Clone, Copy)]
    struct Note {
        index: u32,
        number: u32,
    }

    /// The list. Nothing is allocated, freed or formatted while it is locked: allocators and
    /// writers are users' code, which may use the pool.
    #[derive(Debug, Default)]
    struct Ledger {
        lines: Vec<Line>,
        unused: Option<usize>,
        used: usize,
        /// The next entry's number.
        next: u64,
    }

    impl Ledger {
        /// Notes an entry, if there is a line for it. Returns the line and the number.
        fn note(&mut self, entry: Outstanding) -> Option<Note> {
            let index = match self.unused {
                Some(index) => index,
                None if self.lines.len() < self.lines.capacity() => {
                    self.lines.push(Line::Unused(None));
                    self.lines.len() - 1
                }
                None => return None,
            };
            let number = self.next;
            let line = mem::replace(&mut self.lines[index], Line::Used(number, entry));
            self.unused = if let Line::Unused(next) = line { next } else { None };
            self.next += 1;
            self.used += 1;
            // A list of four thousand million lines would keep those of some buffers that are gone.
            Some(Note { index: index as u32, number: number as u32 })
        }

        /// Takes an entry off, if it is there. Returns memory that is to be freed when the list is
        /// not locked any more.
        fn strike(&mut self, note: Note) -> Vec<Line> {
            match self.lines.get_mut(note.index as usize) {
                Some(line @ &mut Line::Used(used, _)) if used as u32 == note.number => {
                    *line = Line::Unused(self.unused);
                }
                _ => return Vec::new(),
            }
            self.unused = Some(note.index as usize);
            self.used -= 1;
            if self.used > 0 || self.lines.capacity() <= KEPT {
                return Vec::new();
            }
            self.unused = None;
            mem::take(&mut self.lines)
        }
    }

    /// Notes every buffer that is out. Without the `track` feature it does nothing.
    ///
    /// Cost with it: a short lock per acquire and per release, and now and then
    /// an allocation.
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
        /// Notes `buf` as acquired by the caller's caller.
        ///
        /// One of several parts of a buffer that was split is not noted. Its memory is on the list
        /// of the pool that it was acquired from, until the last part is dropped.
        ///
        /// A note that the buffer has already is replaced.
        #[track_caller]
        pub fn attach<L: Lease>(&self, mut buf: Buf<L>) -> Buf<L> {
            let location = Location::caller();
            let entry = Outstanding { location, since: Instant::now(), capacity: buf.capacity() };
            let old = buf.replace_ticket(|| self.ticket(entry));
            drop(old);
            buf
        }

        fn ticket(&self, entry: Outstanding) -> TrackId {
            let mut room = Vec::new();
            loop {
                let mut ledger = lock(&self.ledger);
                if room.capacity() > ledger.lines.capacity() {
                    // No allocation: it has room for all of them.
                    room.append(&mut ledger.lines);
                    mem::swap(&mut ledger.lines, &mut room);
                }
                let noted = ledger.note(entry);
                let wanted = ledger.lines.len() * 2;
                drop(ledger);
                if let Some(note) = noted {
                    return TrackId { place: Some((Arc::clone(&self.ledger), note)) };
                }
                room = Vec::with_capacity(wanted.max(4));
            }
        }

        /// Lists what is out now, longest first.
        #[must_use]
        pub fn outstanding(&self) -> Vec<Outstanding> {
            let mut found = Vec::new();
            loop {
                let ledger = lock(&self.ledger);
                let used = ledger.used;
                if used <= found.capacity() {
                    found.extend(ledger.lines.iter().filter_map(|line| match *line {
                        Line::Used(number, entry) => Some((number, entry)),
                        Line::Unused(_) => None,
                    }));
                    break;
                }
                drop(ledger);
                found = Vec::with_capacity(used);
            }
            found.sort_unstable_by_key(|&(number, _)| number);
            found.into_iter().map(|(_, entry)| entry).collect()
        }
    }

    impl fmt::Debug for Tracker {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let used = lock(&self.ledger).used;
            f.debug_struct("Tracker").field("outstanding", &used).finish()
        }
    }

    /// A buffer's place in its tracker.
    pub(crate) struct TrackId {
        place: Option<(Arc<Mutex<Ledger>>, Note)>,
    }

    impl TrackId {
        #[inline]
        pub(crate) fn none() -> Self {
            Self { place: None }
        }
    }

    impl Drop for TrackId {
        fn drop(&mut self) {
            if let Some((ledger, note)) = self.place.take() {
                let unneeded = lock(&ledger).strike(note);
                drop(unneeded);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::HeapPool;

        #[test]
        fn lines_are_used_again_and_go() {
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
            let tracker = Tracker::default();
            let buf = tracker.attach(HeapPool::new().acquire(1).expect("room"));
            let others: Vec<_> = (0..500).map(|_| tracker.attach(pool.acquire(1).expect("room"))).collect();
            assert!(lock(&tracker.ledger).lines.capacity() >= 501);
            drop((buf, others));
            assert_eq!(lock(&tracker.ledger).lines.capacity(), 0, "a burst leaves nothing");
        }

        #[test]
        fn what_is_held_by_place() {
            let mut pool = HeapPool::new();
            let old: Vec<_> = (0..3).map(|_| pool.acquire(1000).expect("room")).collect();
            let now = Instant::now();
            let mut listed = pool.outstanding();
            listed.iter_mut().for_each(|entry| entry.since = now - Duration::from_secs(10));
            let other = pool.acquire(500).expect("room");
            let mut young = pool.outstanding().pop().expect("just acquired");
            young.since = now - Duration::from_secs(1);
            listed.insert(1, young);
            let folded = Outstanding::folded(&listed);
            let held: Vec<u64> =
                folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
            assert!(matches!(held[..], [30_000_000..31_000_000, 500_000..1_000_000]), "{folded}");
            assert_eq!(Outstanding::folded(&[]), "");
            drop((old, other));
        }
    }
}
