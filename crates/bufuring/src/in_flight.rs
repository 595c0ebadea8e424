//! What is in flight: a table from the kernel's number of an operation to its owner.

use std::sync::Arc;

/// What owns the memory of an operation, and is told of each completion.
pub(crate) trait Pending: Send + Sync {
    /// Takes what the kernel said: a count or a negative error, and flags. It may run users' code:
    /// a waker, or the drop of a buffer.
    fn complete(&self, result: i32, flags: u32);

    /// Whether the operation is to be cancelled: its handle was dropped, or another one takes its
    /// entry.
    fn is_unwanted(&self) -> bool;
}

/// The operations that the kernel may still complete.
///
/// - F1: an entry is there from before the kernel learns of the operation until after its last
///   completion.
/// - F2: the number of an entry is not given again before 2^32 others were in its place.
#[derive(Default)]
pub(crate) struct InFlight {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

struct Entry {
    generation: u32,
    pending: Option<Arc<dyn Pending>>,
}

impl InFlight {
    /// The number of operations.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Keeps `pending`, and returns its number.
    pub(crate) fn insert(&mut self, pending: Arc<dyn Pending>) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, pending: None });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[at as usize];
        entry.pending = Some(pending);
        u64::from(entry.generation) << 32 | u64::from(at)
    }

    fn entry(&self, key: u64) -> Option<(usize, &Entry)> {
        let at = (key as u32) as usize;
        let entry = self.entries.get(at)?;
        (u64::from(entry.generation) == key >> 32 && entry.pending.is_some()).then_some((at, entry))
    }

    /// The owner with this number.
    pub(crate) fn get(&self, key: u64) -> Option<&Arc<dyn Pending>> {
        self.entry(key)?.1.pending.as_ref()
    }

    /// Takes the owner with this number out.
    pub(crate) fn remove(&mut self, key: u64) -> Option<Arc<dyn Pending>> {
        let (at, _) = self.entry(key)?;
        let entry = &mut self.entries[at];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(at as u32);
        entry.pending.take()
    }

    /// The numbers of those that `are` picks.
    pub(crate) fn keys(&self, are: impl Fn(&Arc<dyn Pending>) -> bool) -> Vec<u64> {
        let key = |(at, entry): (usize, &Entry)| {
            let picked = entry.pending.as_ref().is_some_and(&are);
            picked.then_some(u64::from(entry.generation) << 32 | at as u64)
        };
        self.entries.iter().enumerate().filter_map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Pending for Nothing {
        fn complete(&self, _: i32, _: u32) {}

        fn is_unwanted(&self) -> bool {
            false
        }
    }

    #[test]
    fn numbers_are_not_given_twice() {
        let mut in_flight = InFlight::default();
        let first = in_flight.insert(Arc::new(Nothing));
        let second = in_flight.insert(Arc::new(Nothing));
        assert_eq!(in_flight.keys(|_| true), [first, second]);
        assert!(in_flight.remove(first).is_some() && in_flight.remove(first).is_none());
        let third = in_flight.insert(Arc::new(Nothing));
        assert!(third != first && in_flight.get(first).is_none() && in_flight.get(third).is_some());
        assert_eq!(in_flight.len(), 2);
        assert!(in_flight.get(u64::MAX).is_none());
    }
}
