//! The index of gaps: which slot has one of so many bytes behind it.
//!
//! A tree over the slots, in the order of the table. Each node has the most bytes of those below
//! it. So noting a gap and finding one takes as many steps as the number of slots has bits. What it
//! says is a hint: the search looks at the slot itself.

use core::cell::Cell;
use core::ptr::NonNull;

/// Pools of at most this number of slots have no index: a search looks at each slot. In models, all
/// have one.
pub(crate) const FEW_SLOTS: usize = if cfg!(loom) { 0 } else { 64 };

/// The gaps behind the slots of one table.
///
/// # Invariant
///
/// G1: `nodes` points to `2 * leaves` initialised cells, which only the pool's thread uses. The
/// first is not used; the root is the second; of node `i`, the children are `2 * i` and
/// `2 * i + 1`, and the leaves are the last.
#[derive(Debug)]
pub(crate) struct Gaps {
    nodes: NonNull<Cell<u32>>,
    /// One for each slot and the sentinel.
    leaves: usize,
}

impl Gaps {
    /// Returns the bytes of the index for `slots` slots.
    pub(super) const fn bytes(slots: usize) -> usize {
        if slots > FEW_SLOTS { 2 * (slots + 1) * size_of::<u32>() } else { 0 }
    }

    /// Makes the index of `slots` slots at `memory`.
    ///
    /// # Safety
    ///
    /// The memory is aligned for it, has [`bytes`](Self::bytes) bytes, and nobody else uses it
    /// while this is used.
    pub(super) unsafe fn new(memory: NonNull<u8>, slots: usize) -> Self {
        let leaves = if slots > FEW_SLOTS { slots + 1 } else { 0 };
        let gaps = Self { nodes: memory.cast(), leaves };
        gaps.clear();
        gaps
    }

    /// Returns whether there is an index.
    pub(crate) fn exist(&self) -> bool {
        self.leaves > 0
    }

    #[inline]
    fn node(&self, at: usize) -> &Cell<u32> {
        debug_assert!(at < 2 * self.leaves, "node {at} of {} leaves", self.leaves);
        // SAFETY: in the index (G1): callers stay below `2 * leaves`.
        let node = unsafe { self.nodes.add(at) };
        // SAFETY: initialised, and only ever shared (G1).
        unsafe { node.as_ref() }
    }

    /// Forgets all gaps.
    pub(crate) fn clear(&self) {
        // SAFETY: so many cells are there (G1), and nobody has a reference to one.
        unsafe { self.nodes.write_bytes(0, 2 * self.leaves) };
    }

    /// Notes that `bytes` bytes are behind the slot with this `index`.
    pub(crate) fn note(&self, index: usize, bytes: usize) {
        let mut at = self.leaves + index;
        let mut most = saturated(bytes);
        while self.node(at).get() != most {
            self.node(at).set(most);
            if at <= 1 {
                break;
            }
            most = most.max(self.node(at ^ 1).get());
            at /= 2;
        }
    }

    /// Returns the index of a slot that was noted with at least `bytes` bytes behind it.
    pub(crate) fn find(&self, bytes: usize) -> Option<usize> {
        let bytes = saturated(bytes);
        if bytes > self.most() {
            return None;
        }
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.node(at).get() < bytes);
        }
        Some(at - self.leaves)
    }

    /// Returns what was noted of the slot with this `index`.
    #[cfg(all(test, feature = "std"))]
    pub(crate) fn noted(&self, index: usize) -> u32 {
        self.node(self.leaves + index).get()
    }

    /// Returns the most bytes that were noted.
    pub(crate) fn most(&self) -> u32 {
        self.node(1).get()
    }
}

/// Returns `bytes` as a node has them.
fn saturated(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
