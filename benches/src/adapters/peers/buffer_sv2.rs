//! `buffer_sv2`, the pool of the Stratum V2 reference implementation.

use buffer_sv2::{Buffer, BufferFromSystemMemory, BufferPool, Slice};

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Spare, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// Slices that the pool can have out; further ones come from the heap.
const MOST_SLICES: usize = 8;

pub(super) fn engine() -> Engine {
    Engine::new(
        "buffer_sv2",
        Kind::Peer,
        "`BufferPool` over as many bytes as the workload has out at once: `get_writable`, `get_data_owned`. It has eight slots \
         and takes from the heap beyond. Never dropped, since its drop waits for all slices",
    )
    .whole::<Sv2>()
    .sends::<Sv2>()
    .threads_each::<Sv2>()
    .frames::<Sv2>()
}

/// Leaked: dropping it spins while slices are out.
struct Sv2(&'static mut BufferPool<BufferFromSystemMemory>);

// SAFETY: the slice's bytes are its own until it is dropped, and their place does not change. (The
// crate's own atomics are relaxed; the harness hands slices over through a queue that synchronises
// one way, as its users do.)
unsafe impl Block for Theirs<Slice> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut().as_mut_ptr()
    }
}

fn build(plan: &Plan) -> Sv2 {
    let bytes = match plan.spare {
        Spare::None => plan.room.min(MOST_SLICES) * plan.largest,
        _ => plan.with_spare(plan.peak_bytes),
    };
    Sv2(Box::leak(Box::new(BufferPool::new(bytes))))
}

impl Pool for Sv2 {
    type Buf = Theirs<Slice>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(build(plan))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Theirs<Slice> {
        self.0.get_writable(bytes);
        Theirs(self.0.get_data_owned())
    }
}

impl Frames for Sv2 {
    type Frame = Theirs<Slice>;
    type Open<'a> = &'a mut Sv2;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(build(plan))
    }

    #[inline(always)]
    fn open(&mut self) -> &mut Sv2 {
        self
    }
}

impl OpenFrame for &mut Sv2 {
    type Frame = Theirs<Slice>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.get_writable(chunk.len()).copy_from_slice(chunk);
    }

    #[inline(always)]
    fn detach(self) -> Theirs<Slice> {
        Theirs(self.0.get_data_owned())
    }
}
