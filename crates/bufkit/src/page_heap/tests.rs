//! A heap beside a model of it: who has which bytes, and how many pages that is.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::*;

/// Numbers that differ.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    /// A size as often in each doubling.
    fn size(&mut self, doublings: usize) -> usize {
        let log = self.below(doublings);
        (1 << log) + self.below(1 << log)
    }
}

fn mark(start: NonNull<u8>, len: usize, number: u64) {
    for at in [0, len / 2 / 8 * 8, (len - 8) / 8 * 8] {
        // SAFETY: within a span or block that the test has.
        unsafe { start.add(at).cast::<u64>().write_unaligned(number ^ at as u64) };
    }
}

fn check(start: NonNull<u8>, len: usize, number: u64) {
    for at in [0, len / 2 / 8 * 8, (len - 8) / 8 * 8] {
        // SAFETY: as above.
        assert_eq!(unsafe { start.add(at).cast::<u64>().read_unaligned() }, number ^ at as u64);
    }
}

enum Held {
    Span(Span, u64),
    Block(NonNull<u8>, usize, usize, u64),
}

impl Held {
    fn bytes(&self) -> (NonNull<u8>, usize, u64) {
        match *self {
            // SAFETY: the test has it.
            Self::Span(span, number) => unsafe { (span.start(), span.len(), number) },
            Self::Block(start, _, bytes, number) => (start, bytes, number),
        }
    }

    fn given(&self) -> Given {
        match *self {
            Self::Span(span, _) => Given::Span(span),
            Self::Block(start, offset, ..) => Given::Block(start, offset),
        }
    }
}

/// Asks, gives back and trims at random, and checks all that is promised.
fn run(heap: &PageHeap, limit: usize, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let (mut held, mut used): (Vec<Held>, usize) = (Vec::new(), 0);
    let mut places = BTreeMap::new();
    let shapes: Vec<_> =
        (0..8).map(|number| SlabShape::new(number, 64 << number, 16 << (number / 2), 16)).collect();
    for step in 0..steps as u64 {
        match random.below(10) {
            0..=4 => {
                let (bytes, alignment) = (random.size(22), 1 << random.below(17));
                let new = if random.below(2) == 0 {
                    heap.take(bytes, alignment).map(|span| Held::Span(span, step))
                } else {
                    let shape = shapes[random.below(shapes.len())];
                    heap.take_block(shape)
                        .map(|cut| Held::Block(cut.block, cut.offset, shape.stride() - 15, step))
                };
                match new {
                    Ok(new) => {
                        let (start, len, number) = new.bytes();
                        let from = start.addr().get();
                        if let Held::Span(span, _) = new {
                            assert!(len >= bytes && from.is_multiple_of(alignment));
                            // SAFETY: just taken.
                            if unsafe { span.is_zero() } {
                                // SAFETY: likewise.
                                let bytes = unsafe { core::slice::from_raw_parts(start.as_ptr(), len) };
                                assert!(bytes.iter().all(|byte| *byte == 0));
                            }
                            used += len;
                        }
                        let before = places.range(..from + len).next_back();
                        assert!(before.is_none_or(|(at, bytes)| at + bytes <= from), "overlap");
                        places.insert(from, len);
                        mark(start, len, number);
                        held.push(new);
                    }
                    Err(PageError::Exhausted { available, .. }) => {
                        assert!(limit != usize::MAX && available < limit);
                    }
                    Err(PageError::OutOfMemory) => panic!("{bytes} bytes"),
                }
            }
            5..=8 => {
                let mut gone = Vec::new();
                for _ in 0..=random.below(4) {
                    if !held.is_empty() {
                        gone.push(held.swap_remove(random.below(held.len())));
                    }
                }
                for held in &gone {
                    let (start, len, number) = held.bytes();
                    check(start, len, number);
                    places.remove(&start.addr().get());
                    if let Held::Span(..) = held {
                        used -= len;
                    }
                }
                let mut gone = gone.iter();
                // SAFETY: each was taken, and is given back once.
                unsafe { heap.give_all(|| gone.next().map(Held::given)) };
            }
            _ if random.below(8) == 0 => match random.below(2) {
                0 => heap.trim(random.below(limit.min(64 << 20))),
                _ => heap.trim_unused(0),
            },
            _ => {}
        }
        let stats = heap.stats();
        assert!(stats.resident_bytes <= limit && stats.most_resident_bytes <= limit, "{stats:?}");
        assert!(stats.resident_bytes - stats.dirty_bytes >= used);
    }
    for held in &held {
        let (start, len, number) = held.bytes();
        check(start, len, number);
        // SAFETY: taken, and given back once.
        unsafe { heap.give_all(|| None) };
        let mut once = Some(held.given());
        // SAFETY: likewise.
        unsafe { heap.give_all(|| once.take()) };
    }
    let stats = heap.stats();
    assert_eq!(stats.dirty_bytes, stats.resident_bytes, "all is free");
    heap.trim(0);
    assert_eq!(heap.stats().resident_bytes, 0);
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
        assert_eq!(heap.stats().reserved_bytes, 0, "all segments went back");
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
    if heap.stats().reserved_bytes > 2 << 20 {
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
