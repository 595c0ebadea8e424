//! Other global allocators, under a `Vec` of their own, so that all contestants can live in one
//! process.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use allocator_api2::vec::Vec;

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn jemalloc() -> Contestant {
    contestant::<Jemalloc>(
        "jemalloc",
        "`Vec::with_capacity_in` on jemalloc (`tikv-jemallocator`), not the global allocator",
    )
}

pub(super) fn mimalloc() -> Contestant {
    contestant::<Mimalloc>("mimalloc", "`Vec::with_capacity_in` on mimalloc, not the global allocator")
}

fn contestant<A: Global>(name: &'static str, idiom: &'static str) -> Contestant {
    Contestant::new(name, Kind::Peer, idiom)
        .whole::<On<A>>()
        .sends::<On<A>>()
        .threads_each::<On<A>>()
        .frames::<Growing<A>>()
        .uncounted()
}

/// A type with one value, which stands for an allocator of the whole process.
trait Global: GlobalAlloc + Copy + Default + Send + 'static {}

macro_rules! global {
    ($name:ident, $inner:expr) => {
        #[derive(Debug, Clone, Copy, Default)]
        struct $name;

        // SAFETY: each call is passed on as it is.
        unsafe impl GlobalAlloc for $name {
            #[inline(always)]
            unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
                // SAFETY: the caller's promise.
                unsafe { $inner.alloc(layout) }
            }
            #[inline(always)]
            unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
                // SAFETY: the caller's promise.
                unsafe { $inner.dealloc(start, layout) }
            }
            #[inline(always)]
            unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
                // SAFETY: the caller's promise.
                unsafe { $inner.realloc(start, layout, bytes) }
            }
        }

        impl Global for $name {}
    };
}

global!(Jemalloc, tikv_jemallocator::Jemalloc);
global!(Mimalloc, mimalloc::MiMalloc);

/// The allocator as `Vec` wants it.
#[derive(Debug, Clone, Copy, Default)]
struct Of<A>(A);

// SAFETY: memory of the global allocator is valid until it is freed, whichever copy of this empty
// type frees it.
unsafe impl<A: Global> Allocator for Of<A> {
    #[inline(always)]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(NonNull::slice_from_raw_parts(NonNull::dangling(), 0));
        }
        // SAFETY: the layout is not of zero size.
        let start = unsafe { self.0.alloc(layout) };
        NonNull::new(start).map(|start| NonNull::slice_from_raw_parts(start, layout.size())).ok_or(AllocError)
    }

    #[inline(always)]
    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: allocated above with this layout, by the caller's promise.
            unsafe { self.0.dealloc(start.as_ptr(), layout) }
        }
    }

    /// Without this a vector would allocate, copy and free each time it grows, which `std`'s does
    /// not.
    #[inline(always)]
    unsafe fn grow(&self, start: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // Vectors of bytes do neither.
        if old.size() == 0 || old.align() != new.align() {
            return Err(AllocError);
        }
        // SAFETY: allocated with the old layout, by the caller's promise; of the same alignment,
        // and not smaller.
        let start = unsafe { self.0.realloc(start.as_ptr(), old, new.size()) };
        NonNull::new(start).map(|start| NonNull::slice_from_raw_parts(start, new.size())).ok_or(AllocError)
    }
}

// SAFETY: as for `std`'s vector: stable while it does not grow, and valid for its capacity.
unsafe impl<A: Global> Block for Theirs<Vec<u8, Of<A>>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

struct On<A>(Of<A>);

impl<A: Global> Pool for On<A> {
    type Buf = Theirs<Vec<u8, Of<A>>>;

    fn build(_plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self(Of::default()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        Theirs(Vec::with_capacity_in(bytes, self.0))
    }
}

/// As `vec`'s frames.
struct Growing<A> {
    on: Of<A>,
    first_bytes: usize,
}

impl<A: Global> Frames for Growing<A> {
    type Frame = Theirs<Vec<u8, Of<A>>>;
    type Open<'a> = Open<A>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { on: Of::default(), first_bytes: plan.first_bytes })
    }

    #[inline(always)]
    fn open(&mut self) -> Open<A> {
        Open(Vec::with_capacity_in(self.first_bytes, self.on))
    }
}

struct Open<A: Global>(Vec<u8, Of<A>>);

impl<A: Global> OpenFrame for Open<A> {
    type Frame = Theirs<Vec<u8, Of<A>>>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        // `extend_from_slice` is an iterator over the bytes in this crate's vectors.
        self.0.reserve(chunk.len());
        let room = &mut self.0.spare_capacity_mut()[..chunk.len()];
        // SAFETY: a chunk's length of the vector's own memory, which is not the chunk's.
        unsafe { room.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(chunk.as_ptr(), chunk.len()) };
        let len = self.0.len() + chunk.len();
        // SAFETY: reserved, and initialised just now.
        unsafe { self.0.set_len(len) };
    }

    #[inline(always)]
    fn detach(self) -> Self::Frame {
        Theirs(self.0)
    }
}
