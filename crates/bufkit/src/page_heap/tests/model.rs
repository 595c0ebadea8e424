//! A model of a heap: who has which bytes, and how many pages that is. The fuzz target has it too.

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ptr::NonNull;

use testkit::bytes::Bytes;

use super::{Cut, Given, PageError, PageHeap, SlabShape, Span};

/// Numbers of shapes.
const SHAPES: u8 = 10;

/// A span or block that the model has.
#[derive(Clone, Copy)]
struct Held {
    given: Given,
    start: NonNull<u8>,
    len: usize,
    number: u64,
}

impl Held {
    /// Some places, of which no two pages have the same, the first and the last.
    fn places(&self) -> impl Iterator<Item = (NonNull<u64>, u64)> {
        let Self { start, len, number, .. } = *self;
        let last = (len - 8) / 8 * 8;
        (0..last).step_by(4096).chain([last]).map(move |at| {
            // SAFETY: within a span or block that the model has.
            (unsafe { start.add(at) }.cast(), number ^ at as u64)
        })
    }

    fn mark(&self) {
        for (place, value) in self.places() {
            // SAFETY: the model's bytes.
            unsafe { place.write_unaligned(value) };
        }
    }

    fn check(&self) {
        for (place, value) in self.places() {
            // SAFETY: the model's bytes.
            assert_eq!(unsafe { place.read_unaligned() }, value, "another wrote to it");
        }
    }
}

/// A heap with its model.
pub(crate) struct Model<'a> {
    heap: &'a PageHeap,
    limit: usize,
    held: Vec<Held>,
    /// Bytes of spans that are held, and what is held by its addresses.
    spans: usize,
    places: BTreeMap<usize, usize>,
    number: u64,
}

impl<'a> Model<'a> {
    /// Makes the model of a new heap.
    pub(crate) fn new(heap: &'a PageHeap, limit: usize) -> Self {
        Self { heap, limit, held: Vec::new(), spans: 0, places: BTreeMap::new(), number: 0 }
    }

    /// Does what the next bytes say, and checks all that is promised. Where the system refuses
    /// calls meanwhile, there may be no memory.
    pub(crate) fn step(&mut self, bytes: &mut Bytes<'_>, is_refusing: bool) {
        self.number += 0x0101_0101;
        match bytes.below(16) {
            0..=3 => self.take_span(bytes, is_refusing),
            4..=7 => self.take_block(bytes, is_refusing),
            8..=11 => self.give(bytes),
            12 => self.grow(bytes),
            13 => self.shrink(bytes),
            14 => {
                let most = bytes.pick([0, 0, 1 << 16, self.limit.min(64 << 20)]);
                self.heap.trim(most);
                let stats = self.heap.stats();
                let is_done = stats.resident_bytes <= most || stats.dirty_bytes == 0;
                assert!(is_done || is_refusing || !self.heap.returns_pages(), "{most}: {stats:?}");
            }
            _ => self.heap.trim_unused(bytes.pick([0, 0, 1 << 20, usize::MAX])),
        }
        let (stats, used) = (self.heap.stats(), self.heap.used());
        assert!(stats.resident_bytes <= self.limit && stats.most_resident_bytes <= self.limit, "{stats:?}");
        assert!(used >= self.spans && used <= self.limit, "{used} of {}", self.spans);
    }

    fn take_span(&mut self, bytes: &mut Bytes<'_>, is_refusing: bool) {
        let log = bytes.below(23);
        let len = (1 << log) + ((usize::from(bytes.number()) << log) >> 16);
        let alignment = 1 << bytes.pick([0, 0, 3, 6, 12, 13, 14, 16, 18, 21]);
        let is_zeroed = bytes.below(4) == 0;
        let taken = match is_zeroed {
            true => self.heap.take_zeroed(len, alignment),
            false => self.heap.take(len, alignment),
        };
        match taken {
            Ok(span) => {
                // SAFETY: just taken.
                let (start, its) = unsafe { (span.start(), span.len()) };
                assert!(its >= len && its < len + self.heap.page_bytes());
                assert!(start.addr().get().is_multiple_of(alignment.max(4096)), "{start:?} for {alignment}");
                // SAFETY: just taken.
                if is_zeroed || unsafe { span.is_zero() } {
                    // SAFETY: likewise.
                    let bytes = unsafe { core::slice::from_raw_parts(start.as_ptr(), its) };
                    assert!(bytes.iter().all(|byte| *byte == 0), "not zero");
                }
                assert!(self.heap.span_at(start).is_none_or(|found| found == span));
                self.keep(Given::Span(span), start, its);
            }
            Err(error) => self.refused(len, error, is_refusing),
        }
    }

    fn take_block(&mut self, bytes: &mut Bytes<'_>, is_refusing: bool) {
        let number = bytes.pick([0, 1, 2, 3, 4, 5, 6, 7, 8, SHAPES - 1]);
        let alignment = 16 << (number / 2);
        let shape = SlabShape::new(number, 48 << number, alignment, 16);
        match self.heap.take_block(shape) {
            Ok(Cut { block, offset, number: its }) => {
                assert!((block.addr().get() + 16).is_multiple_of(alignment), "{block:?} for {alignment}");
                assert!(its >= number);
                // SAFETY: just taken.
                let len = unsafe { self.heap.block_bytes(block, offset) };
                assert!(len >= shape.stride() && (its > number || len == shape.stride()));
                self.keep(Given::Block(block, offset), block, len);
            }
            Err(error) => self.refused(shape.least_bytes(self.heap.page_bytes()), error, is_refusing),
        }
    }

    fn keep(&mut self, given: Given, start: NonNull<u8>, len: usize) {
        let from = start.addr().get();
        let before = self.places.range(..from + len).next_back();
        assert!(before.is_none_or(|(at, bytes)| at + bytes <= from), "overlap");
        self.places.insert(from, len);
        if let Given::Span(_) = given {
            self.spans += len;
        }
        let held = Held { given, start, len, number: self.number };
        held.mark();
        self.held.push(held);
    }

    /// Checks that there is no memory for `bytes` bytes: so much is used.
    fn refused(&self, bytes: usize, error: PageError, is_refusing: bool) {
        match error {
            PageError::Exhausted { available, .. } => {
                let pages = bytes.next_multiple_of(self.heap.page_bytes());
                assert!(!self.heap.returns_pages() || pages > available, "{bytes} of {available}");
                assert!(!self.heap.returns_pages() || available + self.heap.used() + 4096 > self.limit);
                assert!(available <= self.limit && self.limit != usize::MAX);
            }
            error => assert!(is_refusing, "{bytes} bytes: {error}"),
        }
    }

    /// Takes a span out of what is held, if there is one.
    fn pick(&mut self, bytes: &mut Bytes<'_>) -> Option<(Held, Span)> {
        let number = usize::from(bytes.number()) % self.held.len().max(1);
        let held = *self.held.get(number)?;
        let Given::Span(span) = held.given else { return None };
        self.held.swap_remove(number);
        held.check();
        self.places.remove(&held.start.addr().get());
        self.spans -= held.len;
        Some((held, span))
    }

    fn grow(&mut self, bytes: &mut Bytes<'_>) {
        let Some((held, span)) = self.pick(bytes) else { return };
        let len = held.len + (held.len >> bytes.below(4)) + 1;
        let alignment = 1 << bytes.pick([0, 12, 14, 16]);
        // SAFETY: the model's, and the old one is not used any more.
        let grown = unsafe { self.heap.grow(span, len, alignment) };
        let span = grown.unwrap_or(span);
        // SAFETY: the model's.
        let (start, its) = unsafe { (span.start(), span.len()) };
        assert!(grown.map_or(its == held.len, |_| its >= len && its < len + self.heap.page_bytes()));
        assert!(start == held.start || start.addr().get().is_multiple_of(alignment));
        Held { start, ..held }.check();
        self.keep(Given::Span(span), start, its);
    }

    fn shrink(&mut self, bytes: &mut Bytes<'_>) {
        let Some((held, span)) = self.pick(bytes) else { return };
        let len = (held.len >> bytes.below(4)).max(1);
        // SAFETY: the model's, of which what is behind is not used any more.
        unsafe { self.heap.shrink(span, len) };
        // SAFETY: the model's.
        let its = unsafe { span.len() };
        assert_eq!(its, len.next_multiple_of(self.heap.page_bytes()));
        self.keep(Given::Span(span), held.start, its);
    }

    fn give(&mut self, bytes: &mut Bytes<'_>) {
        let mut gone = Vec::new();
        for _ in 0..=bytes.below(4) {
            if !self.held.is_empty() {
                gone.push(self.held.swap_remove(usize::from(bytes.number()) % self.held.len()));
            }
        }
        for held in &gone {
            held.check();
            self.places.remove(&held.start.addr().get());
            if let Given::Span(_) = held.given {
                self.spans -= held.len;
            }
        }
        let mut gone = gone.iter();
        // SAFETY: each was taken, and is given back once.
        unsafe { self.heap.give_all(|| gone.next().map(|held| held.given)) };
    }

    /// Gives all back, and checks that nothing is used but `lost` bytes.
    pub(crate) fn end(mut self, lost: usize) {
        while !self.held.is_empty() {
            self.give(&mut Bytes::new(&[3]));
        }
        assert_eq!(self.heap.used(), lost, "all is free");
        self.heap.trim(0);
        let stats = self.heap.stats();
        assert_eq!((stats.resident_bytes, stats.dirty_bytes, stats.free_block_bytes), (lost, 0, 0));
        assert!(self.heap.returns_pages() || stats.address_bytes == 0, "all segments went back");
    }
}
