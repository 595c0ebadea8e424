//! Spans that grow and shrink, and heaps with one reservation.

#![cfg(all(not(miri), any(unix, windows)))]

use super::super::system::hooks::{self, Call};
use super::*;

const PAGES: usize = 128;

fn at(span: Span) -> usize {
    // SAFETY: the test's.
    unsafe { span.start() }.addr().get()
}

fn fill(span: Span, byte: u8) {
    // SAFETY: the test's.
    unsafe { span.start().write_bytes(byte, span.len()) };
}

fn starts_with(span: Span, byte: u8, bytes: usize) -> bool {
    // SAFETY: the test's.
    let all = unsafe { core::slice::from_raw_parts(span.start().as_ptr(), bytes) };
    all.iter().all(|its| *its == byte)
}

/// Returns a heap with one reservation, and two neighbours of `PAGES` pages, of which the first has
/// bytes of 7.
fn neighbours(limit: usize) -> (PageHeap, Span, Span) {
    let heap = PageHeap::with_addresses(1 << 30, limit).expect("there are addresses");
    let bytes = PAGES * heap.page_bytes();
    let [first, second] = [(); 2].map(|()| heap.take(bytes, 1).unwrap());
    fill(first, 7);
    fill(second, 9);
    assert_eq!(at(first) + bytes, at(second));
    (heap, first, second)
}

#[test]
fn a_span_grows_in_place_where_its_neighbour_is_free() {
    let (heap, first, second) = neighbours(usize::MAX);
    let bytes = PAGES * heap.page_bytes();
    give(&heap, [second]);
    // SAFETY: the test's.
    let grown = unsafe { heap.grow(first, 4 * bytes, 1) }.unwrap();
    assert_eq!((grown, heap.used()), (first, 4 * bytes));
    // SAFETY: likewise.
    assert_eq!(unsafe { (grown.len(), grown.is_zero()) }, (4 * bytes, false));
    assert!(starts_with(grown, 7, bytes));
    table::check(&heap);
    // SAFETY: likewise.
    unsafe { heap.shrink(grown, bytes) };
    assert_eq!((heap.used(), heap.stats().dirty_bytes), (bytes, 3 * bytes));
    table::check(&heap);
}

#[cfg(target_os = "linux")]
#[test]
fn a_span_grows_by_moving_its_pages() {
    let (heap, first, _second) = neighbours(usize::MAX);
    let bytes = PAGES * heap.page_bytes();
    let before = (heap.stats().moved_bytes, heap.stats().dirty_bytes);
    // SAFETY: the test's.
    let grown = unsafe { heap.grow(first, 2 * bytes, 1 << 16) }.unwrap();
    assert!(at(grown).is_multiple_of(1 << 16) && grown != first);
    assert!(starts_with(grown, 7, bytes));
    let stats = heap.stats();
    assert_eq!((stats.moved_bytes, stats.dirty_bytes), (before.0 + bytes, before.1));
    assert_eq!(heap.used(), 3 * bytes);
    fill(grown, 1);
    table::check(&heap);
}

#[test]
fn a_span_that_cannot_grow_is_as_before() {
    let (heap, first, _second) = neighbours(3 * PAGES * 4096);
    let bytes = PAGES * heap.page_bytes();
    // SAFETY: the test's.
    let grow = |bytes| unsafe { heap.grow(first, bytes, 1) };
    assert_eq!(grow(3 * bytes), None, "the limit has no room");
    assert_eq!(grow(usize::MAX), None);
    hooks::with(|hooks| hooks.is_refused[Call::Move as usize] = true);
    assert_eq!(grow(2 * bytes), None, "the system refuses");
    hooks::with(|hooks| hooks.is_refused[Call::Move as usize] = false);
    let used = heap.used();
    assert_eq!(used, 2 * bytes);
    assert!(starts_with(first, 7, bytes));
    table::check(&heap);
    assert_eq!(grow(2 * bytes), None, "nor is it asked again soon");
}

/// Lets moves of half of a span and less through, of these the first, and the next come to this.
#[cfg(target_os = "linux")]
fn stop_in_the_middle(heap: &PageHeap, is_lost: bool) {
    hooks::with(|hooks| {
        hooks.most_moved = PAGES / 2 * heap.page_bytes();
        hooks.skip = 1;
        hooks.is_refused[Call::Move as usize] = true;
        hooks.is_lost[Call::Move as usize] = is_lost;
    });
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_not_moved_is_copied() {
    for is_kept in [false, true] {
        let (heap, first, _second) = neighbours(usize::MAX);
        let bytes = PAGES * heap.page_bytes();
        stop_in_the_middle(&heap, false);
        hooks::with(|hooks| hooks.is_refused[Call::Discard as usize] = is_kept);
        // SAFETY: the test's.
        let grown = unsafe { heap.grow(first, 2 * bytes, 1) }.unwrap();
        assert!(grown != first && starts_with(grown, 7, bytes));
        let (stats, kept) = (heap.stats(), if is_kept { bytes } else { 0 });
        assert_eq!((stats.moved_bytes, stats.dirty_bytes, heap.used()), (bytes / 2, kept, 3 * bytes));
        table::check(&heap);
        hooks::with(|hooks| hooks.is_refused = [false; 6]);
        // Old pages are not taken for zeros.
        let span = heap.take(bytes, 1).unwrap();
        // SAFETY: likewise.
        assert!(starts_with(span, 0, bytes) || !unsafe { span.is_zero() });
    }
}

/// Checks that what came before addresses were lost is where it was.
#[cfg(target_os = "linux")]
#[test]
fn lost_addresses_lose_no_bytes_of_a_span() {
    let (heap, first, _second) = neighbours(usize::MAX);
    let bytes = PAGES * heap.page_bytes();
    stop_in_the_middle(&heap, true);
    // SAFETY: the test's.
    assert_eq!(unsafe { heap.grow(first, 2 * bytes, 1) }, None);
    assert!(starts_with(first, 7, bytes));
    assert_eq!(heap.used(), 2 * bytes);
    table::check(&heap);
    drop(heap);
    let lost = hooks::with(|hooks| core::mem::take(&mut hooks.lost));
    assert_eq!(lost.iter().map(|(_, bytes)| bytes).sum::<usize>(), bytes / 2);
}

#[test]
fn a_large_zeroed_span_is_not_touched() {
    let heap = PageHeap::with_addresses(1 << 30, usize::MAX).expect("there are addresses");
    let dirty = heap.take(8 << 20, 1).unwrap();
    fill(dirty, 7);
    give(&heap, [dirty]);
    let span = heap.take_zeroed(8 << 20, 1).unwrap();
    assert_eq!(heap.stats().dirty_bytes, 8 << 20, "the dirty pages are there");
    // SAFETY: the test's.
    assert!(unsafe { span.is_zero() } && starts_with(span, 0, 8 << 20));
    let small = heap.take_zeroed(1 << 20, 1).unwrap();
    assert_eq!(heap.stats().dirty_bytes, 7 << 20);
    assert!(starts_with(small, 0, 1 << 20));
}

#[test]
fn one_reservation_is_all_that_there_is() {
    let heap = PageHeap::with_addresses(1 << 30, usize::MAX).expect("there are addresses");
    let reserved = heap.stats().address_bytes;
    assert!(reserved <= 1 << 30);
    let spans: Vec<_> = core::iter::from_fn(|| heap.take_zeroed(16 << 20, 1).ok()).take(100).collect();
    assert!(spans.len() > 50 && spans.len() < 64 && heap.take(16 << 20, 1) == Err(PageError::OutOfMemory));
    assert_eq!(heap.stats().address_bytes, reserved);
    for span in &spans {
        // SAFETY: the test's.
        let start = unsafe { span.start() };
        assert_eq!(heap.span_at(start), Some(*span));
    }
    let outside = NonNull::from(&reserved).cast();
    assert_eq!(heap.span_at(outside), None);
    let other = PageHeap::new(PageSource::System, usize::MAX);
    let span = other.take(1, 1).unwrap();
    // SAFETY: the test's.
    assert_eq!(unsafe { (heap.span_at(span.start()), other.span_at(span.start())) }, (None, None));
    hooks::with(|hooks| hooks.is_refused[Call::Reserve as usize] = true);
    assert!(PageHeap::with_addresses(1 << 30, usize::MAX).is_none());
    hooks::with(|hooks| (hooks.is_refused[Call::Reserve as usize], hooks.most_reserved) = (false, 1 << 20));
    let few = PageHeap::with_addresses(1 << 30, usize::MAX).expect("there are few");
    assert!(few.stats().address_bytes <= 1 << 20);
}

#[test]
fn a_held_heap_makes_others_wait() {
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    let held = heap.hold();
    assert!(heap.inner.try_lock().is_err());
    drop(held);
    assert!(heap.inner.try_lock().is_ok());
}
