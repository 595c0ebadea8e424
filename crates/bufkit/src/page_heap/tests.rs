//! What a heap does.

mod costs;
mod grow;
mod model;
mod refusals;
mod table;

use alloc::sync::Arc;
use alloc::vec::Vec;

use testkit::bytes::Bytes;

use self::model::Model;
use super::*;

/// Runs a model on bytes that differ, with a check of the index now and then.
fn run(heap: &PageHeap, limit: usize, seed: u64, steps: usize) {
    let bytes = random(seed, steps * 8);
    let (mut bytes, mut model) = (Bytes::new(&bytes), Model::new(heap, limit));
    heap.lock().is_thrifty = seed.is_multiple_of(2);
    for step in 0..steps {
        model.step(&mut bytes, false);
        if step % 64 == 0 {
            table::check(heap);
        }
    }
    model.end(0);
    table::check(heap);
}

/// Gives spans of a test back.
fn give(heap: &PageHeap, spans: impl IntoIterator<Item = Span>) {
    let mut spans = spans.into_iter();
    // SAFETY: the test's, and given back once.
    unsafe { heap.give_all(|| spans.next().map(Given::Span)) };
}

/// Numbers that differ.
fn random(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    core::iter::repeat_with(next).take(count).collect()
}

const STEPS: usize = if cfg!(miri) { 200 } else { 4000 };

#[test]
fn a_heap_does_what_its_model_does() {
    for seed in 0..8 {
        let limit = [usize::MAX, 4 << 20, 16 << 20, 300_000][seed as usize % 4];
        let heap = PageHeap::new(PageSource::System, limit);
        run(&heap, limit, seed, STEPS);
    }
}

#[test]
fn so_does_one_without_addresses() {
    for seed in 0..4 {
        let limit = [usize::MAX, 8 << 20][seed as usize % 2];
        let provider = PoolProvider::new(Arc::new(testkit::source::FromAllocator));
        let heap = PageHeap::new(PageSource::Provider(provider), limit);
        run(&heap, limit, seed, STEPS / 4);
        assert_eq!(heap.stats().address_bytes, 0, "all segments went back");
    }
}

#[test]
fn so_does_one_with_one_reservation() {
    for seed in 0..4 {
        let limit = [usize::MAX, 4 << 20, 16 << 20, 300_000][seed as usize % 4];
        let Some(heap) = PageHeap::with_addresses(1 << 30, limit) else { return };
        run(&heap, limit, seed, STEPS);
    }
}

/// Checks that a request is served that has room only where free pages are gathered, and that their
/// bytes are not shown as zeros.
#[cfg(all(not(miri), any(unix, windows)))]
#[test]
fn scattered_pages_serve_a_large_request() {
    let limit = 16 << 20;
    let heap = PageHeap::new(PageSource::System, limit);
    let mut spans: Vec<_> = (0..64).map(|_| heap.take(256 << 10, 1).unwrap()).collect();
    for span in &spans {
        // SAFETY: ours.
        unsafe { span.start().write_bytes(1, span.len()) };
    }
    let mut index = 0;
    spans.retain(|span| {
        index += 1;
        if index % 2 == 0 {
            // SAFETY: ours, and given back once.
            unsafe { heap.give(*span) };
        }
        index % 2 != 0
    });
    assert!(
        matches!(heap.take((8 << 20) + 1, 1), Err(PageError::Exhausted { available, .. }) if available == 8 << 20)
    );
    let large = heap.take(8 << 20, 1).unwrap();
    let stats = heap.stats();
    assert_eq!((stats.resident_bytes, stats.dirty_bytes), (limit, 0));
    #[cfg(target_os = "linux")]
    assert!(stats.moved_bytes >= 7 << 20 && stats.faulted_bytes <= 17 << 20, "{stats:?}");
    // SAFETY: ours.
    unsafe {
        assert!(!large.is_zero() || stats.moved_bytes == 0);
        large.start().write_bytes(2, large.len());
    }
    for span in &spans {
        // SAFETY: ours.
        let bytes = unsafe { core::slice::from_raw_parts(span.start().as_ptr(), span.len()) };
        assert!(bytes.iter().all(|byte| *byte == 1));
    }
}

#[test]
fn what_was_not_needed_goes() {
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    let spans: Vec<_> = (0..16).map(|_| heap.take(64 << 10, 1).unwrap()).collect();
    for span in spans {
        // SAFETY: ours, and given back once.
        unsafe { heap.give(span) };
    }
    heap.trim_unused(0);
    assert_eq!(heap.stats().dirty_bytes, 1 << 20, "it was needed a moment ago");
    let half = heap.take(512 << 10, 1).unwrap();
    // SAFETY: ours, and given back once.
    unsafe { heap.give(half) };
    if heap.stats().address_bytes > 2 << 20 {
        heap.trim_unused(0);
        assert_eq!(heap.stats().dirty_bytes, 512 << 10);
    }
    heap.trim_unused(0);
    heap.trim_unused(0);
    assert_eq!(heap.stats().dirty_bytes, 0);
}

#[test]
fn absurd_sizes_are_refused() {
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 4096, 1 << (usize::BITS - 2)] {
        assert_eq!(heap.take(bytes, 1), Err(PageError::OutOfMemory), "{bytes}");
    }
    let heap = PageHeap::new(PageSource::System, 4095);
    assert_eq!(heap.take(1, 1), Err(PageError::Exhausted { available: 0, slabs: 0 }));
    assert_eq!(heap.stats().resident_bytes, 0);
}

/// What a burst leaves goes at once, though somebody looks; what requests miss stays.
#[cfg(target_os = "linux")]
#[test]
fn what_requests_miss_stays() {
    const COUNT: usize = 128;
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    heap.trim_unused(0);
    let round = || {
        let spans: Vec<_> = (0..COUNT).map(|_| heap.take(1 << 20, 1).unwrap()).collect();
        give(&heap, spans);
        heap.stats()
    };
    let first = round();
    assert_eq!((first.faulted_bytes, first.dirty_bytes), (COUNT << 20, 32 << 20));
    for _ in 0..3 {
        round();
    }
    let before = heap.stats();
    let after = round();
    assert_eq!((after.faulted_bytes, after.dirty_bytes), (before.faulted_bytes, COUNT << 20), "{before:?}");
    table::check(&heap);
}
