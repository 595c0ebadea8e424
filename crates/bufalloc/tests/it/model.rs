//! A model: who has which bytes, and what is in them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::ptr::NonNull;

use bufalloc::Large;
use fastrand::Rng;

/// Allocators with borders of their own, over one heap.
pub(crate) static BORDERS: [Large; 3] =
    [Large::new(), Large::over(System).from(0), Large::new().from(1 << 20)];

/// A block.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    border: usize,
    number: u64,
}

impl Block {
    fn alloc(&self) -> &'static Large {
        &BORDERS[self.border]
    }

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

/// Blocks, and their addresses.
pub(crate) struct Model {
    rng: Rng,
    blocks: Vec<Block>,
    places: BTreeMap<usize, usize>,
    /// Whether there may be no memory.
    is_refusing: bool,
}

impl Model {
    pub(crate) fn new(seed: u64, is_refusing: bool) -> Self {
        Self { rng: Rng::with_seed(seed), blocks: Vec::new(), places: BTreeMap::new(), is_refusing }
    }

    fn size(&mut self) -> usize {
        let near = [4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
        match self.rng.u8(..4) {
            0 => near[self.rng.usize(..near.len())] + self.rng.usize(..3) - 1,
            _ => {
                let log = self.rng.u32(..22);
                (1 << log) + self.rng.usize(..1 << log)
            }
        }
    }

    /// Does what is drawn, and checks it.
    pub(crate) fn step(&mut self) {
        match self.rng.u8(..8) {
            0..3 => self.alloc(),
            3..6 => self.realloc(),
            _ => self.free_one(),
        }
        if self.blocks.len() > 48 {
            self.free_one();
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
    fn take(&mut self) -> Option<Block> {
        let at = self.rng.usize(..self.blocks.len().max(1));
        let block = (at < self.blocks.len()).then(|| self.blocks.swap_remove(at))?;
        block.check(block.layout.size(), block.layout.size());
        self.places.remove(&block.start.addr().get());
        Some(block)
    }

    fn free_one(&mut self) {
        if let Some(block) = self.take() {
            Self::free(block);
        }
    }

    fn free(block: Block) {
        // SAFETY: its own, which nobody uses any more.
        unsafe { block.alloc().dealloc(block.start.as_ptr(), block.layout) };
    }

    fn alloc(&mut self) {
        let (size, border) = (self.size(), self.rng.usize(..BORDERS.len()));
        let align = 1 << [0, 3, 4, 6, 12, 13, 16, 21][self.rng.usize(..8)];
        let layout = Layout::from_size_align(size, align).unwrap();
        let is_zeroed = self.rng.bool();
        let alloc = &BORDERS[border];
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
        let number = self.rng.u64(..);
        self.keep(Block { start, layout, border, number });
    }

    fn realloc(&mut self) {
        let Some(mut block) = self.take() else { return };
        let old = block.layout.size();
        let new = match self.rng.u8(..4) {
            0 => self.size(),
            1 => old * 2,
            2 => old + self.rng.usize(..3 * 4096),
            _ => (old / 2).max(1),
        };
        let new = new.min(8 << 20);
        // SAFETY: its own block, and a size that is not 0.
        let start = unsafe { block.alloc().realloc(block.start.as_ptr(), block.layout, new) };
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
        while let Some(block) = self.take() {
            Self::free(block);
        }
    }
}

const STEPS: usize = if cfg!(miri) { 60 } else { 6000 };

#[test]
fn blocks_are_what_the_model_has() {
    for seed in 0..4 {
        let mut model = Model::new(seed, false);
        (0..STEPS).for_each(|_| model.step());
        model.end();
    }
}

#[test]
fn t05_absurd_sizes_are_refused() {
    for alloc in &BORDERS {
        for align in [1, 4096, 1 << 30, 1 << (usize::BITS - 2)] {
            for size in [isize::MAX as usize, isize::MAX as usize / 2, 1 << (usize::BITS - 3)] {
                let Ok(layout) = Layout::from_size_align(size, align) else { continue };
                // SAFETY: the size is not 0.
                assert!(unsafe { alloc.alloc(layout) }.is_null(), "{layout:?}");
                // SAFETY: likewise.
                assert!(unsafe { alloc.alloc_zeroed(layout) }.is_null(), "{layout:?}");
            }
        }
        for size in [1, 32 << 10, 1 << 20] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the size is not 0.
            let start = unsafe { alloc.alloc_zeroed(layout) };
            // SAFETY: its block; on failure it stays.
            assert!(unsafe { alloc.realloc(start, layout, isize::MAX as usize - 8) }.is_null());
            // SAFETY: likewise.
            unsafe {
                assert_eq!(start.add(size - 1).read(), 0);
                alloc.dealloc(start, layout);
            }
        }
    }
}

/// Checks which blocks are whose, by where they are.
#[test]
fn the_border_decides() {
    if !crate::HAS_HEAP {
        return;
    }
    let layout = |size| Layout::from_size_align(size, 8).unwrap();
    let place = |alloc: &Large, size| {
        // SAFETY: the size is not 0.
        let start = unsafe { alloc.alloc(layout(size)) };
        // SAFETY: its block.
        unsafe { alloc.dealloc(start, layout(size)) };
        start.addr()
    };
    let [usual, low, high] = &BORDERS;
    let heap = place(usual, 32 << 10);
    // The table is between the pages and what else is mapped.
    let is_heaps = |at: usize| (at.abs_diff(heap) as u64) < 1 << 32;
    assert!(is_heaps(place(low, 4096)) && is_heaps(place(high, 1 << 20)));
    assert!(!is_heaps(place(usual, (32 << 10) - 1)) && !is_heaps(place(low, 4095)));
    assert!(!is_heaps(place(high, (1 << 20) - 1)));
}
