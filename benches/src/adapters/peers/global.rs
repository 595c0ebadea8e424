//! Other global allocators, under a vector of their own, so that all engines can live in one
//! process.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use std::alloc::handle_alloc_error;

use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn all() -> [Engine; 2] {
    [
        engine::<tikv_jemallocator::Jemalloc>(
            "jemalloc",
            "as `vec`, on jemalloc (`tikv-jemallocator`), not the global allocator",
        ),
        engine::<mimalloc::MiMalloc>("mimalloc", "as `vec`, on mimalloc, not the global allocator"),
    ]
}

fn engine<A: Global>(name: &'static str, idiom: &'static str) -> Engine {
    Engine::new(name, Kind::Peer, idiom)
        .whole::<On<A>>()
        .sends::<On<A>>()
        .threads_each::<On<A>>()
        .frames::<On<A>>()
        .uncounted()
}

/// An allocator of the whole process.
trait Global: GlobalAlloc + 'static {
    const GLOBAL: Self;
}

impl Global for tikv_jemallocator::Jemalloc {
    const GLOBAL: Self = Self;
}

impl Global for mimalloc::MiMalloc {
    const GLOBAL: Self = Self;
}

fn layout(bytes: usize) -> Layout {
    Layout::array::<u8>(bytes).expect("a buffer that the workload has room for")
}

/// A vector of bytes.
struct Bytes<A: Global> {
    start: *mut u8,
    len: usize,
    /// Over zero.
    capacity: usize,
    of: PhantomData<A>,
}

// SAFETY: it owns its bytes, and the allocator serves any thread.
unsafe impl<A: Global> Send for Bytes<A> {}

impl<A: Global> Bytes<A> {
    #[inline(always)]
    fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        // SAFETY: the layout is not of zero size.
        let start = unsafe { A::GLOBAL.alloc(layout(capacity)) };
        if start.is_null() {
            handle_alloc_error(layout(capacity));
        }
        Self { start, len: 0, capacity, of: PhantomData }
    }

    /// As `std`'s vector grows.
    #[cold]
    fn grow(&mut self, least: usize) {
        let capacity = least.max(2 * self.capacity);
        // SAFETY: allocated with that layout; the new size is not zero, and `layout` has checked it.
        let start = unsafe { A::GLOBAL.realloc(self.start, layout(self.capacity), layout(capacity).size()) };
        if start.is_null() {
            handle_alloc_error(layout(capacity));
        }
        (self.start, self.capacity) = (start, capacity);
    }
}

impl<A: Global> Drop for Bytes<A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: allocated with that layout, and dropped once.
        unsafe { A::GLOBAL.dealloc(self.start, layout(self.capacity)) }
    }
}

// SAFETY: as for `std`'s vector: stable while it does not grow, and valid for its capacity.
unsafe impl<A: Global> Block for Bytes<A> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.start
    }
}

struct On<A> {
    first_bytes: usize,
    of: PhantomData<A>,
}

impl<A: Global> Pool for On<A> {
    type Buf = Bytes<A>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { first_bytes: plan.first_bytes, of: PhantomData })
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Bytes<A> {
        Bytes::with_capacity(bytes)
    }
}

impl<A: Global> Frames for On<A> {
    type Frame = Bytes<A>;
    type Open<'a> = Bytes<A>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        <Self as Pool>::build(plan)
    }

    #[inline(always)]
    fn open(&mut self) -> Bytes<A> {
        Bytes::with_capacity(self.first_bytes)
    }
}

impl<A: Global> OpenFrame for Bytes<A> {
    type Frame = Self;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        let len = self.len + chunk.len();
        if len > self.capacity {
            self.grow(len);
        }
        // SAFETY: `len <= capacity`.
        let end = unsafe { self.start.add(self.len) };
        // SAFETY: a chunk's length of the vector's own memory, which is not the chunk's.
        unsafe { end.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len()) };
        self.len = len;
    }

    #[inline(always)]
    fn detach(self) -> Self {
        self
    }
}
