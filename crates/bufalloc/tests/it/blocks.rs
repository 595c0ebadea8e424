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

thread_local! {
    /// What this thread allocated by [`Counting`].
    static COUNTED_BLOCKS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts the blocks of each thread.
struct Counting;

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTED_BLOCKS.set(COUNTED_BLOCKS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Returns whether the heap serves so many bytes, not the allocator below.
fn is_heaps(alloc: &Large<Counting>, size: usize) -> bool {
    let layout = Layout::from_size_align(size, 8).unwrap();
    let before = COUNTED_BLOCKS.get();
    // SAFETY: the size is not 0.
    let start = unsafe { alloc.alloc(layout) };
    assert!(!start.is_null());
    // SAFETY: its block.
    unsafe { alloc.dealloc(start, layout) };
    COUNTED_BLOCKS.get() == before
}

/// Checks which blocks are whose, by what the allocator below serves.
#[test]
fn the_border_decides() {
    let usual = Large::over(Counting);
    let low = Large::over(Counting).threshold(0);
    let high = Large::over(Counting).threshold(1 << 20);
    for (alloc, border) in [(&usual, 32 << 10), (&low, 4096), (&high, 1 << 20)] {
        assert_eq!(is_heaps(alloc, border), crate::HAS_HEAP, "{border}");
        assert!(!is_heaps(alloc, border - 1), "{border}");
    }
}

/// What a thread allocates in a panic is not the heap's: the panic could be one under its lock.
#[test]
fn panics_do_not_take_from_the_heap() {
    struct InPanic<'a>(&'a Cell<Option<bool>>);

    impl Drop for InPanic<'_> {
        fn drop(&mut self) {
            self.0.set(Some(is_heaps(&Large::over(Counting), 1 << 20)));
        }
    }

    let in_panic = Cell::new(None);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let _in_panic = InPanic(&in_panic);
        panic!("on purpose");
    }));
    assert!(ended.is_err());
    assert_eq!(in_panic.get(), Some(false));
    assert_eq!(is_heaps(&Large::over(Counting), 1 << 20), crate::HAS_HEAP);
}
