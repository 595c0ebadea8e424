//! Single blocks: where they lie, and what is in them.

use std::alloc::Layout;
use std::ptr::NonNull;

use testkit::pattern;
use testkit::trials::scaled;

use super::{Pool, on_all};

/// A block that is out, with the number of its pattern.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    seed: u64,
}

impl Block {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block is out, of this layout, and was filled.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }

    fn check(&mut self) {
        let seed = self.seed;
        pattern::check(self.bytes(), seed, 0);
    }

    fn is_zero_from(&mut self, at: usize) -> bool {
        self.bytes()[at..].iter().all(|&byte| byte == 0)
    }
}

fn layout(random: &mut fastrand::Rng, least: usize, most: usize) -> Layout {
    let largest_shift = if random.u8(0..20) == 0 { 12 } else { 6 };
    let align = 1 << random.usize(0..=largest_shift);
    let size = if random.u8(0..10) == 0 { random.usize(0..60_000) } else { random.usize(0..600) };
    Layout::from_size_align(size.clamp(least, most), align).unwrap()
}

/// Takes a block, zeroed or not.
fn take(pool: &impl Pool, random: &mut fastrand::Rng) -> Block {
    let layout = layout(random, 0, usize::MAX);
    let zeroed = random.bool();
    let taken = if zeroed { pool.allocate_zeroed(layout) } else { pool.allocate(layout) };
    let mut block = Block { start: taken.unwrap().cast(), layout, seed: 0 };
    assert!(!zeroed || block.is_zero_from(0), "a block that is not zero");
    block
}

/// Grows or shrinks a block, which keeps the bytes that both layouts have.
fn change(pool: &impl Pool, block: &mut Block, random: &mut fastrand::Rng) {
    let old = block.layout;
    let grows = random.bool();
    let (least, most) = if grows { (old.size(), usize::MAX) } else { (0, old.size()) };
    block.layout = layout(random, least, most);
    let zeroed = grows && random.bool();
    let changed = if zeroed {
        // SAFETY: the block is out, of this layout, and the new one is not smaller.
        unsafe { pool.grow_zeroed(block.start, old, block.layout) }
    } else if grows {
        // SAFETY: as above.
        unsafe { pool.grow(block.start, old, block.layout) }
    } else {
        // SAFETY: as above; the new one is not larger.
        unsafe { pool.shrink(block.start, old, block.layout) }
    };
    block.start = changed.unwrap().cast();
    let (seed, kept) = (block.seed, old.size().min(block.layout.size()));
    assert!(!zeroed || block.is_zero_from(old.size()), "grown by other than zeros");
    pattern::check(&block.bytes()[..kept], seed, 0);
}

fn takes_and_gives_back(name: &str, pool: &impl Pool) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut blocks: Vec<Block> = Vec::new();
    for step in 0..scaled(20_000) as u64 {
        if blocks.len() < 2 || blocks.len() < 40 && random.bool() {
            blocks.push(take(pool, &mut random));
        } else {
            let mut block = blocks.swap_remove(random.usize(0..blocks.len()));
            block.check();
            if random.u8(0..3) == 0 {
                // SAFETY: the block is out, of this layout.
                unsafe { pool.deallocate(block.start, block.layout) };
                continue;
            }
            change(pool, &mut block, &mut random);
            blocks.push(block);
        }
        let Some(block) = blocks.last_mut() else { continue };
        assert_eq!(block.start.addr().get() % block.layout.align(), 0, "{name}: alignment");
        block.seed = step;
        pattern::fill(block.bytes(), step, 0);
    }
    for mut block in blocks {
        block.check();
        // SAFETY: the block is out, of this layout.
        unsafe { pool.deallocate(block.start, block.layout) };
    }
}

#[test]
fn blocks_are_apart_aligned_and_keep_their_bytes() {
    on_all!(takes_and_gives_back);
}

fn refuses(name: &str, pool: &impl Pool) {
    for size in [1 << 40, isize::MAX as usize - 4096, isize::MAX as usize] {
        for align in [1, 4096] {
            let Ok(layout) = Layout::from_size_align(size, align) else { continue };
            assert!(pool.allocate(layout).is_err(), "{name}: {size} bytes");
        }
    }
    let small = Layout::new::<u64>();
    let block = pool.allocate(small).unwrap();
    let large = Layout::from_size_align(1 << 40, 8).unwrap();
    // SAFETY: the block is out, of this layout; the new one is larger.
    assert!(unsafe { pool.grow(block.cast(), small, large) }.is_err(), "{name}");
    // SAFETY: a grow that fails leaves the block as it was.
    unsafe { pool.deallocate(block.cast(), small) };
}

#[test]
fn absurd_sizes_are_errors() {
    on_all!(refuses);
}
