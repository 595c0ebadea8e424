//! A model: who has which bytes, and what is in them. The fuzz target has it too.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::ptr::NonNull;

use bufalloc::Large;
use testkit::bytes::Bytes;

/// Blocks at once.
const MOST: usize = 48;
/// The longest block.
const LONGEST: usize = 8 << 20;

/// A block.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    alloc: &'static Large,
    number: u64,
}

impl Block {
    /// Some places among the first `bytes` bytes: in each page, and at the end.
    fn places(&self, bytes: usize) -> impl Iterator<Item = (NonNull<u64>, u64)> {
        let (start, number) = (self.start, self.number);
        let last = bytes.checked_sub(8);
        let pages = (0..last.unwrap_or(0)).step_by(4096).filter(move |at| last >= Some(at + 8));
        pages.chain(last).map(move |at| {
            // SAFETY: within the block.
            (unsafe { start.add(at) }.cast(), number ^ at as u64)
        })
    }

    fn mark(&self) {
        for (place, value) in self.places(self.layout.size()) {
            // SAFETY: the model's bytes.
            unsafe { place.write_unaligned(value) };
        }
    }

    /// Checks the places of a block that had `size` bytes, and has at least `bytes` of them.
    #[track_caller]
    fn check(&self, size: usize, bytes: usize) {
        for (place, value) in self.places(size) {
            if place.addr().get() + 8 <= self.start.addr().get() + bytes {
                // SAFETY: the model's bytes.
                assert_eq!(unsafe { place.read_unaligned() }, value, "{size} bytes");
            }
        }
    }
}

/// Blocks of some allocators over one heap, and their addresses.
pub(crate) struct Model {
    allocs: &'static [Large; 3],
    number: u64,
    blocks: Vec<Block>,
    places: BTreeMap<usize, usize>,
    /// Whether there may be no memory.
    is_refusing: bool,
}

impl Model {
    pub(crate) fn new(allocs: &'static [Large; 3], is_refusing: bool) -> Self {
        Self { allocs, number: 0, blocks: Vec::new(), places: BTreeMap::new(), is_refusing }
    }

    fn size(bytes: &mut Bytes<'_>) -> usize {
        // Borders of allocators; from where pages are moved, zeroed blocks are untouched, and tables go.
        let near = [4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
        match bytes.below(4) {
            0 => bytes.pick(near) + bytes.below(3) - 1,
            _ => {
                let log = bytes.below(22);
                (1 << log) + (usize::from(bytes.number()) << log >> 16)
            }
        }
    }

    /// Does what the next bytes say, and checks it.
    pub(crate) fn step(&mut self, bytes: &mut Bytes<'_>) {
        self.number = self.number.wrapping_add(0x0101_0101);
        match bytes.below(8) {
            0..3 => self.alloc(bytes),
            3..6 => self.realloc(bytes),
            6 => self.free_one(bytes),
            _ => match bytes.below(16) {
                0 => bufalloc::trim(),
                1 => self.allocs[0].tick(),
                _ => self.free_one(bytes),
            },
        }
        if self.blocks.len() > MOST {
            self.free_one(bytes);
        }
    }

    fn keep(&mut self, block: Block) {
        let (from, len) = (block.start.addr().get(), block.layout.size());
        assert!(from.is_multiple_of(block.layout.align()), "{from:#x} for {:?}", block.layout);
        let before = self.places.range(..from + len).next_back();
        assert!(before.is_none_or(|(at, bytes)| at + bytes <= from), "overlap");
        self.places.insert(from, len);
        block.mark();
        self.blocks.push(block);
    }

    /// Takes a block out of the model.
    fn take(&mut self, bytes: &mut Bytes<'_>) -> Option<Block> {
        let at = bytes.below(self.blocks.len().max(1));
        let block = (at < self.blocks.len()).then(|| self.blocks.swap_remove(at))?;
        block.check(block.layout.size(), block.layout.size());
        self.places.remove(&block.start.addr().get());
        Some(block)
    }

    fn free_one(&mut self, bytes: &mut Bytes<'_>) {
        if let Some(block) = self.take(bytes) {
            Self::free(block);
        }
    }

    fn free(block: Block) {
        // SAFETY: its own, which nobody uses any more.
        unsafe { block.alloc.dealloc(block.start.as_ptr(), block.layout) };
    }

    fn alloc(&mut self, bytes: &mut Bytes<'_>) {
        let (size, alloc) = (Self::size(bytes), &self.allocs[bytes.below(3)]);
        let align = 1 << bytes.pick([0, 3, 4, 6, 12, 13, 16, 20, 21]);
        let layout = Layout::from_size_align(size, align).unwrap();
        let is_zeroed = bytes.below(2) == 0;
        // SAFETY: the size is not 0.
        let start = unsafe { if is_zeroed { alloc.alloc_zeroed(layout) } else { alloc.alloc(layout) } };
        let Some(start) = NonNull::new(start) else {
            assert!(self.is_refusing, "no memory for {layout:?}");
            return;
        };
        if is_zeroed {
            // SAFETY: the new block, which is initialised.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), size) };
            assert!(bytes.iter().all(|byte| *byte == 0), "not zero: {layout:?}");
        }
        self.keep(Block { start, layout, alloc, number: self.number });
    }

    fn realloc(&mut self, bytes: &mut Bytes<'_>) {
        let Some(mut block) = self.take(bytes) else { return };
        let old = block.layout.size();
        let new = match bytes.below(4) {
            0 => Self::size(bytes),
            1 => old * 2,
            2 => old + usize::from(bytes.number()) % (3 * 4096),
            _ => (old / 2).max(1),
        };
        let new = new.min(LONGEST);
        // SAFETY: its own block, and a size that is not 0.
        let start = unsafe { block.alloc.realloc(block.start.as_ptr(), block.layout, new) };
        if let Some(start) = NonNull::new(start) {
            block.start = start;
            block.layout = Layout::from_size_align(new, block.layout.align()).unwrap();
        } else {
            assert!(self.is_refusing, "no memory for {new} bytes");
        }
        block.check(old, old.min(block.layout.size()));
        self.keep(block);
    }

    /// Frees all.
    pub(crate) fn end(mut self) {
        while let Some(block) = self.take(&mut Bytes::new(&[])) {
            Self::free(block);
        }
    }
}
