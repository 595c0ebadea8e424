//! The page heap in a process: threads, resident memory (T12), limits on addresses (T18).

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise is behind all of a block: the test has the span"
)]

use std::sync::mpsc;
use std::thread;

use bufkit::{Cut, Given, PageHeap, PageSource, SlabShape};
use testkit::bytes::Bytes;

const THREADS: usize = if cfg!(miri) { 2 } else { 4 };
const ROUNDS: usize = if cfg!(miri) { 30 } else { 3000 };

/// What a thread has: its start, its bytes, and what it is given back as.
struct Held {
    given: Given,
    start: *mut u8,
    bytes: usize,
    mark: u64,
}

// SAFETY: bytes of a heap, which whoever has them may use.
unsafe impl Send for Held {}

impl Held {
    fn take(heap: &PageHeap, bytes: &mut Bytes<'_>, mark: u64) -> Option<Self> {
        let held = if bytes.below(2) == 0 {
            let size = 1 << bytes.below(20);
            let span = heap.take(size, 1).ok()?;
            // SAFETY: just taken. The place is the owner's, who writes to it without the lock.
            unsafe { span.place().write(mark.to_le_bytes().repeat(2).try_into().expect("16 bytes")) };
            // SAFETY: likewise.
            let (start, bytes) = unsafe { (span.start().as_ptr(), span.len()) };
            Self { given: Given::Span(span), start, bytes, mark }
        } else {
            let number = bytes.below(6) as u8;
            let Cut { block, offset, .. } =
                heap.take_block(SlabShape::new(number, 64 << number, 64, 0)).ok()?;
            // SAFETY: just taken.
            let bytes = unsafe { heap.block_bytes(block, offset) };
            Self { given: Given::Block(block, offset), start: block.as_ptr(), bytes, mark }
        };
        for at in [0, held.bytes / 2, held.bytes - 8] {
            // SAFETY: within its bytes.
            unsafe { held.start.add(at).cast::<u64>().write_unaligned(mark + at as u64) };
        }
        Some(held)
    }

    fn check(&self) {
        for at in [0, self.bytes / 2, self.bytes - 8] {
            // SAFETY: within its bytes.
            let read = unsafe { self.start.add(at).cast::<u64>().read_unaligned() };
            assert_eq!(read, self.mark + at as u64, "another wrote to it");
        }
        if let Given::Span(span) = self.given {
            // SAFETY: it has the span.
            assert_eq!(unsafe { span.place().read() }[..8], self.mark.to_le_bytes());
        }
    }
}

#[test]
fn threads_take_and_give_each_others_spans() {
    let limit = 4 << 20;
    let heap = PageHeap::new(PageSource::System, limit);
    thread::scope(|scope| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Held>()).unzip();
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (heap, senders) = (&heap, senders.clone());
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number as u64);
                for round in 0..ROUNDS {
                    let bytes: [u8; 4] = std::array::from_fn(|_| random.u8(..));
                    let mark = (number * ROUNDS + round) as u64 * 0x1_0000_0001;
                    if let Some(held) = Held::take(heap, &mut Bytes::new(&bytes), mark) {
                        // Its receiver may have ended.
                        if let Err(mpsc::SendError(held)) = senders[random.usize(..THREADS)].send(held) {
                            give(heap, [held]);
                        }
                    }
                    let most = random.usize(..4);
                    give(heap, receiver.try_iter().take(most).collect::<Vec<_>>());
                    match random.u32(..200) {
                        0 => heap.trim(random.usize(..limit)),
                        1 => heap.trim_unused(0),
                        _ => assert!(heap.stats().resident_bytes <= limit),
                    }
                }
                drop(senders);
                give(heap, receiver.into_iter().collect::<Vec<_>>());
            });
        }
    });
    heap.trim(0);
    assert_eq!((heap.used(), heap.stats().resident_bytes), (0, 0));
}

/// Of a slab of which one block is out, the pages stay that this block is on, and the first if the
/// slab has no more than two, and no others. They come back with blocks.
#[test]
#[cfg(any(target_os = "linux", target_os = "android"))]
fn a_survivor_keeps_its_pages() {
    let heap = PageHeap::new(PageSource::System, usize::MAX);
    let page = heap.page_bytes();
    let cases = [(page + 16, 16, false), (page / 8 * 3, 5, true)];
    for (bytes, blocks, has_head) in cases {
        for stays in 0..blocks {
            survives(&heap, SlabShape::new(u8::from(has_head), bytes, 16, 16), blocks, stays, has_head);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn survives(heap: &PageHeap, shape: SlabShape, blocks: usize, stays: usize, has_head: bool) {
    let (page, bytes) = (heap.page_bytes(), shape.stride());
    let take = || {
        let cut = heap.take_block(shape).expect("there is memory");
        // SAFETY: just taken.
        unsafe { cut.block.write_bytes(7, bytes) };
        cut
    };
    let mut cuts: Vec<_> = (0..blocks).map(|_| take()).collect();
    let Cut { block, offset, .. } = cuts.swap_remove(stays);
    let mut others = cuts.into_iter().map(|cut| Given::Block(cut.block, cut.offset));
    // SAFETY: from this heap, and given back once.
    unsafe { heap.give_all(|| others.next()) };
    heap.trim(0);
    let (first, last) = (offset / page, (offset + bytes - 1) / page);
    let pages = last - first + 1 + usize::from(has_head && first > 0);
    let adds_up = |resident| {
        let stats = heap.stats();
        assert_eq!(stats.resident_bytes, resident, "block {stays} of {blocks}");
        assert_eq!(stats.faulted_bytes - stats.returned_bytes, resident);
    };
    adds_up(pages * page);
    // Where they are not had again, they are not there when the slab is free.
    if stays.is_multiple_of(2) {
        let mut last = Some(Given::Block(block, offset));
        // SAFETY: as above.
        unsafe { heap.give_all(|| last.take()) };
        adds_up(pages * page);
        heap.trim(0);
        return adds_up(0);
    }
    // SAFETY: it is ours.
    let kept = unsafe { core::slice::from_raw_parts(block.as_ptr(), bytes) };
    assert!(kept.iter().all(|byte| *byte == 7));
    let again: Vec<_> = (1..blocks).map(|_| take()).collect();
    assert!(heap.stats().resident_bytes >= blocks * bytes);
    let mut all = again.into_iter().map(|cut| (cut.block, cut.offset)).chain([(block, offset)]);
    // SAFETY: as above.
    unsafe { heap.give_all(|| all.next().map(|(block, offset)| Given::Block(block, offset))) };
    heap.trim(0);
    adds_up(0);
}

fn give(heap: &PageHeap, held: impl IntoIterator<Item = Held>) {
    let mut held = held.into_iter();
    let next = || {
        let held = held.next()?;
        held.check();
        Some(held.given)
    };
    // SAFETY: each was taken, and is given back once; the checks do not use the heap.
    unsafe { heap.give_all(next) };
}

#[cfg(all(target_os = "linux", not(miri)))]
mod process {
    use std::time::Duration;

    use bufkit::{PageError, PageHeap, PageSource, Span};
    use testkit::process::{address_space_bytes, alone, limit, mappings, resident_bytes};

    const LIMIT: Duration = Duration::from_secs(120);
    const MIB: usize = 1 << 20;

    fn filled(heap: &PageHeap, bytes: usize, value: u8) -> Span {
        let span = heap.take(bytes, 1).expect("there is room");
        // SAFETY: just taken.
        unsafe { span.start().write_bytes(value, span.len()) };
        span
    }

    fn give(heap: &PageHeap, spans: Vec<Span>) {
        for span in spans {
            // SAFETY: the test's, and given back once.
            unsafe { heap.give(span) };
        }
    }

    #[test]
    fn t12_a_trim_after_a_peak() {
        alone(module_path!(), "t12_a_trim_after_a_peak", LIMIT, || {
            let peak = 1 << 30;
            let heap = PageHeap::new(PageSource::System, peak);
            let before = resident_bytes();
            let small: Vec<_> = (0..peak / 2 / 4096).map(|_| filled(&heap, 4096, 1)).collect();
            let large: Vec<_> = (0..8).map(|_| filled(&heap, 64 * MIB, 2)).collect();
            assert!(resident_bytes() >= before + peak);
            assert!(matches!(heap.take(1, 1), Err(PageError::Exhausted { available: 0, .. })));
            give(&heap, large);
            heap.trim(peak / 2);
            assert!(resident_bytes() < before + peak / 2 + 32 * MIB, "the half that is free");
            // Every other page is used, which then no trim takes.
            let (kept, gone): (Vec<_>, Vec<_>) =
                small.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
            let kept: Vec<_> = kept.into_iter().map(|(_, span)| span).collect();
            give(&heap, gone.into_iter().map(|(_, span)| span).collect());
            heap.trim(0);
            assert!(resident_bytes() < before + peak / 4 + 32 * MIB, "{:?}", heap.stats());
            // SAFETY: the test's.
            assert!(kept.iter().all(|span| unsafe { span.start().read() } == 1));
            give(&heap, kept);
            heap.trim(0);
            assert_eq!(heap.stats().resident_bytes, 0);
            assert!(resident_bytes() < before + 8 * MIB, "{} were {before}", resident_bytes());
            drop(heap);
            assert!(resident_bytes() < before + MIB, "the table as well");
        });
    }

    #[test]
    fn t18_few_addresses() {
        alone(module_path!(), "t18_few_addresses", LIMIT, || {
            let (addresses, maps) = (address_space_bytes(), mappings());
            limit(libc::RLIMIT_AS, (addresses + 48 * MIB) as u64);
            // Asked for four times as many at once.
            let heap = PageHeap::new(PageSource::System, 1 << 30);
            let mut spans = vec![filled(&heap, 100_000, 1)];
            let reserved = heap.stats().address_bytes;
            assert!((1..=48 * MIB).contains(&reserved), "{reserved} bytes");
            while let Ok(span) = heap.take(MIB, 1) {
                // SAFETY: just taken.
                unsafe { span.start().write_bytes(2, span.len()) };
                spans.push(span);
            }
            assert!(spans.len() >= 32, "of 48 MiB {}", spans.len());
            assert_eq!(heap.take(MIB, 1), Err(PageError::OutOfMemory));
            let count = spans.len();
            give(&heap, spans);
            let again: Vec<_> = (1..count).map(|_| filled(&heap, MIB, 3)).collect();
            give(&heap, again);
            drop(heap);
            assert!(address_space_bytes() <= addresses + MIB && mappings() <= maps + 2, "all addresses went");
            let heap = PageHeap::new(PageSource::System, usize::MAX);
            assert_eq!(heap.take(64 * MIB, 1), Err(PageError::OutOfMemory));
            give(&heap, vec![filled(&heap, 16 * MIB, 4)]);
        });
    }
}
