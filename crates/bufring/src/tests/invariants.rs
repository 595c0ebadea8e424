//! The invariants of the ring, as code.

use crate::RingPool;
use crate::ring::{GuardPtr, room};

impl RingPool {
    /// Whether the next request goes back, which is the slow way to the newest block.
    pub(crate) fn goes_back(&self) -> bool {
        self.ring.is_free(self.newest) && self.free_before(self.newest).is_some()
    }

    /// Asserts the invariants of `ring` and `pool`.
    pub(crate) fn check(&self) {
        let ring = &self.ring;
        let guards: alloc::vec::Vec<GuardPtr> =
            core::iter::once(ring.front()).chain(ring.all()).chain([ring.end()]).collect();
        for pair in guards.windows(2) {
            assert_eq!(ring.next(pair[0]), pair[1], "R1");
            assert_eq!(ring.before(pair[1]), pair[0], "R1");
        }
        for &at in &guards[1..guards.len() - 1] {
            assert_eq!(ring.data(at).addr().get() % self.grid.alignment(), 0, "a block is not aligned");
            let least = if ring.is_free(at) { 1 } else { self.grid.units(1) };
            assert!(ring.size(at) >= least, "a block of {} units", ring.size(at));
        }
        assert!(!ring.is_free(ring.front()) && !ring.is_free(ring.end()), "R4");
        assert_eq!((ring.size(ring.end()), ring.before(ring.front())), (0, ring.front()), "R4");
        let units = ring.all().map(|at| ring.size(at)).sum::<usize>();
        assert_eq!(room(units + ring.unused()), self.capacity, "bytes were lost");
        for at in [self.newest, self.base, self.resume] {
            assert!(guards.contains(&at), "P1");
        }
        assert_eq!(self.head, ring.next(self.newest), "P1");
    }
}
