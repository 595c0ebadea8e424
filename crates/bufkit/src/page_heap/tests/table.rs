//! The invariants of the index and of the counts of a heap, checked by a walk over all of it.

use alloc::collections::BTreeSet;

use super::super::index::{self, Kind};
use super::super::inner::Inner;
use super::super::segment::Segment;
use super::PageHeap;

/// Checks X1 to X3, and that all pages are counted. Returns the bytes that are counted and lost.
pub(super) fn check(heap: &PageHeap) -> usize {
    let inner = heap.lock();
    let (mut used, mut dirty, mut clean) = (0, BTreeSet::new(), BTreeSet::new());
    let (mut dirty_pages, mut clean_pages, mut reserved) = (0, 0, 0);
    for segment in inner.segments() {
        // SAFETY: the heap is locked, and the first of these is an extent (X1).
        unsafe {
            reserved += segment.as_ref().reserved_bytes();
            let (mut entry, mut at, mut before) = (Segment::first(segment), 0, Kind::Edge);
            let start = index::start_at(entry);
            while at < segment.as_ref().pages {
                let (kind, pages) = (index::kind_at(entry), index::pages_at(entry));
                assert!(pages > 0 && at + pages <= segment.as_ref().pages, "X1: {kind:?} of {pages}");
                assert_eq!(index::start_at(entry), start.add(at * inner.page_bytes), "X1");
                let last = entry.add(pages - 1);
                assert_eq!((index::kind_at(last), index::pages_at(last)), (kind, pages), "X1");
                match kind {
                    Kind::Used => used += pages,
                    Kind::Dirty => dirty_pages += usize::from(dirty.insert(entry)) * pages,
                    Kind::Clean => clean_pages += usize::from(clean.insert(entry)) * pages,
                    Kind::Lost => assert!(inner.is_torn),
                    Kind::Edge | Kind::HeldDirty | Kind::HeldClean => panic!("{kind:?}"),
                }
                assert!(kind != before || !matches!(kind, Kind::Dirty | Kind::Clean), "X3: two {kind:?}");
                (entry, at, before) = (entry.add(pages), at + pages, kind);
            }
            assert_eq!(index::kind_at(entry), Kind::Edge);
        }
    }
    let listed = |inner: &Inner| (inner.index.dirty.listed(), inner.index.clean.listed());
    assert!(listed(&inner) == (dirty, clean), "X2");
    let resident = inner.resident() - inner.slabs.gone;
    assert_eq!(inner.faulted - inner.returned, resident, "what the system gave is there");
    assert_eq!((inner.index.dirty.pages, inner.index.clean.pages), (dirty_pages, clean_pages));
    assert!(inner.used == used || inner.is_torn && inner.used > used, "{} for {used}", inner.used);
    assert_eq!(inner.reserved_bytes, reserved);
    assert!(inner.resident() <= inner.limit && inner.resident() <= inner.most_resident);
    assert!(inner.leaving.is_null(), "segments that nobody gives back");
    inner.slabs.check();
    (inner.used - used) * inner.page_bytes
}
