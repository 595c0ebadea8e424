//! What the workload costs when nobody keeps books: buffers that are handed out in turn, whether
//! they are back or not.
//!
//! It is right only as long as no more than the planned number is out, which the workloads keep to
//! and nobody checks.

use core::hint::black_box;

use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool, Stream};
use bufkit::staggered;

pub(super) fn engine() -> Engine {
    Engine::new(
        "noop",
        Kind::Control,
        "no bookkeeping: the same memory each time. For N buffers at once, N parts of one block in turn. For frames, a cursor \
         in one block. For streams, a copy into the same memory and one out",
    )
    .whole::<Parts>()
    .sends::<Parts>()
    .threads_each::<Parts>()
    .frames::<Cursor>()
    .streams::<Copies>()
}

/// Memory that is never freed, so that nothing has to say when.
fn block(bytes: usize) -> *mut u8 {
    vec![0_u8; bytes].leak().as_mut_ptr()
}

/// A part of a leaked block. Dropping it does nothing.
pub(crate) struct Part(*mut u8);

// SAFETY: a pointer to leaked bytes; exclusive as long as no more parts are out than the plan has,
// which holds for the workloads and for their checks.
unsafe impl Block for Part {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0
    }
}

// SAFETY: as above; a pointer to bytes can be used on any thread.
unsafe impl Send for Part {}

/// Hands out the parts of a block in turn.
pub(crate) struct Parts {
    start: *mut u8,
    /// Offset of the next part.
    next: usize,
    /// Bytes from one part to the next.
    step: usize,
    /// Offset of the last part.
    last: usize,
}

impl Pool for Parts {
    type Buf = Part;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        // Staggered as in the strategies, so that `noop` is not slower than they are.
        let step = staggered(plan.largest);
        let parts = plan.live.max(1);
        let bytes = step.saturating_mul(parts);
        if bytes > 1 << 30 {
            return Err(format!("{parts} parts of the largest size would take {} MiB", bytes >> 20).into());
        }
        Ok(Self { start: block(bytes), next: 0, step, last: bytes - step })
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Part {
        let offset = self.next;
        self.next = if offset == self.last { 0 } else { offset + self.step };
        // SAFETY: `next` is at most `last`, a part's length before the block's end.
        Part(unsafe { self.start.add(offset) })
    }

    const KEEPS_BOOKS: bool = false;
}

/// Copies to one place and from there.
pub(crate) struct Copies(Vec<u8>);

impl Stream for Copies {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Ok(Self(vec![0; bytes]))
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        black_box(&mut self.0[..bytes.len()]).copy_from_slice(bytes);
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        into.copy_from_slice(black_box(&self.0[..into.len()]));
    }

    const KEEPS_BOOKS: bool = false;
}

/// Writes frames one behind the other and starts again at the front.
pub(crate) struct Cursor {
    start: *mut u8,
    next: usize,
    end: usize,
    largest: usize,
}

impl Frames for Cursor {
    type Frame = Part;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        // A frame starts only where a whole one fits, so with room for one more than planned the
        // oldest is not overtaken.
        let parts = if plan.live == 1 { 1 } else { plan.live + 1 };
        let bytes = plan.largest * parts;
        Ok(Self { start: block(bytes), next: 0, end: bytes, largest: plan.largest })
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        if self.end - self.next < self.largest {
            self.next = 0;
        }
        // SAFETY: `next <= end`, within the block.
        let first = unsafe { self.start.add(self.next) };
        Open { first, next: first, room: self.end - self.next, cursor: self }
    }

    const KEEPS_BOOKS: bool = false;
}

/// The frame behind the cursor. Has its own copy of everything, so that the optimiser can keep it
/// in registers: it cannot know that the bytes written are not the cursor's own.
pub(crate) struct Open<'a> {
    first: *mut u8,
    next: *mut u8,
    /// Bytes from `next` to the end of the block.
    room: usize,
    cursor: &'a mut Cursor,
}

impl OpenFrame for Open<'_> {
    type Frame = Part;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        assert!(chunk.len() <= self.room, "a frame is at most as long as planned");
        // SAFETY: there is room for the chunk (just checked), which is the harness's and no part of
        // the block.
        unsafe { self.next.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len()) };
        // SAFETY: as above.
        self.next = unsafe { self.next.add(chunk.len()) };
        self.room -= chunk.len();
    }

    #[inline(always)]
    fn detach(self) -> Part {
        self.cursor.next = self.cursor.end - self.room;
        Part(self.first)
    }
}
