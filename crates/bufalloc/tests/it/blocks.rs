//! Blocks beside the model, absurd sizes, and which blocks are whose.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bufalloc::Large;
use fastrand::Rng;
use testkit::bytes::Bytes;

use super::model::Model;

/// Allocators with borders of their own, over one heap.
static BORDERS: [Large; 3] =
    [Large::new(), Large::over(System).threshold(0), Large::new().threshold(1 << 20)];

/// What a step takes, about.
const STEP_BYTES: usize = 8;

/// Does about so many steps of a model, of bytes that are drawn.
pub(crate) fn traffic(seed: u64, is_refusing: bool, steps: usize) {
    let mut program = vec![0; steps * STEP_BYTES];
    Rng::with_seed(seed).fill(&mut program);
    let (mut bytes, mut model) = (Bytes::new(&program), Model::new(&BORDERS, is_refusing));
    while !bytes.is_empty() {
        model.step(&mut bytes);
    }
    model.end();
}

const STEPS: usize = if cfg!(miri) { 60 } else { 6000 };

#[test]
fn blocks_are_what_the_model_has() {
    (0..4).for_each(|seed| traffic(seed, false, STEPS));
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

/// Returns where a block is, which is freed.
fn place(alloc: &Large, size: usize) -> usize {
    let layout = Layout::from_size_align(size, 8).unwrap();
    // SAFETY: the size is not 0.
    let start = unsafe { alloc.alloc(layout) };
    // SAFETY: its block.
    unsafe { alloc.dealloc(start, layout) };
    start.addr()
}

/// Returns whether an address is the heap's: the table is between the pages and what else is mapped.
fn is_heaps(at: usize) -> bool {
    (at.abs_diff(place(&BORDERS[0], 32 << 10)) as u64) < 1 << 32
}

/// Checks which blocks are whose, by where they are.
#[test]
fn the_border_decides() {
    if !crate::HAS_HEAP {
        return;
    }
    let [usual, low, high] = &BORDERS;
    assert!(is_heaps(place(low, 4096)) && is_heaps(place(high, 1 << 20)));
    assert!(!is_heaps(place(usual, (32 << 10) - 1)) && !is_heaps(place(low, 4095)));
    assert!(!is_heaps(place(high, (1 << 20) - 1)));
}

/// What a thread allocates in a panic is not the heap's: the panic could be one under its lock.
#[test]
fn panics_do_not_take_from_the_heap() {
    struct InPanic<'a>(&'a Cell<usize>);

    impl Drop for InPanic<'_> {
        fn drop(&mut self) {
            self.0.set(place(&BORDERS[0], 1 << 20));
        }
    }

    let at = Cell::new(0);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let _in_panic = InPanic(&at);
        panic!("on purpose");
    }));
    assert!(ended.is_err() && at.get() != 0);
    assert!(!is_heaps(at.get()) || !crate::HAS_HEAP);
}
