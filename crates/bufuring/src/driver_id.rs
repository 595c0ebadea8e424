//! What tells one driver from another, and tells a driver which handles were dropped; see
//! [`DriverId`].

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bufkit::sync::{Mutex, lock};

/// So many dropped operations are remembered one by one.
const MOST: usize = 32;

/// What a driver shares with its handles.
#[derive(Debug, Clone)]
pub(crate) struct DriverId(Arc<Notices>);

#[derive(Debug, Default)]
struct Notices {
    /// Whether `dropped` may have something.
    has_news: AtomicBool,
    dropped: Mutex<Dropped>,
}

/// The handles that were dropped since the driver last asked.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    keys: [u64; MOST],
    /// How many operations. Where they are more than `MOST`, the driver looks at all that it has.
    operations: usize,
    pub(crate) groups: usize,
}

impl Dropped {
    /// The numbers of the operations, unless they were too many to be remembered.
    pub(crate) fn operations(&self) -> Option<&[u64]> {
        self.keys.get(..self.operations)
    }
}

impl DriverId {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Notes that an operation is to be cancelled, as its handle was dropped. The operation knows
    /// it by then.
    pub(crate) fn operation_dropped(&self, key: u64) {
        self.note(|dropped| {
            if let Some(place) = dropped.keys.get_mut(dropped.operations) {
                *place = key;
            }
            dropped.operations = dropped.operations.saturating_add(1);
        });
    }

    /// Notes that a group was dropped. Its share of the buffers is gone by then.
    pub(crate) fn group_dropped(&self) {
        self.note(|dropped| dropped.groups += 1);
    }

    fn note(&self, what: impl FnOnce(&mut Dropped)) {
        let mut dropped = lock(&self.0.dropped);
        what(&mut dropped);
        // ORDER: Relaxed: whoever sees it takes the lock, which orders the rest. Whoever does not
        // looks again at the next call.
        self.0.has_news.store(true, Ordering::Relaxed);
    }

    /// Returns the handles that were dropped since the last call, if there are any.
    pub(crate) fn news(&self) -> Option<Dropped> {
        // ORDER: Relaxed, as in `note`.
        if !self.0.has_news.load(Ordering::Relaxed) {
            return None;
        }
        let mut dropped = lock(&self.0.dropped);
        // ORDER: Relaxed: both stores are made with the lock.
        self.0.has_news.store(false, Ordering::Relaxed);
        Some(mem::take(&mut *dropped))
    }

    /// Returns whether both are of one driver.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_remembered_until_they_are_too_many() {
        let driver_id = DriverId::new();
        assert!(driver_id.news().is_none());
        driver_id.operation_dropped(7);
        driver_id.group_dropped();
        let news = driver_id.news().expect("two handles were dropped");
        assert_eq!((news.operations(), news.groups), (Some(&[7][..]), 1));
        assert!(driver_id.news().is_none());
        for count in 1..=MOST + 1 {
            (0..count as u64).for_each(|key| driver_id.operation_dropped(key));
            let news = driver_id.news().expect("some were dropped");
            match news.operations() {
                Some(keys) => assert!(keys.iter().copied().eq(0..count as u64)),
                None => assert_eq!(count, MOST + 1),
            }
        }
    }
}
