//! T37: memory that is said to be zero is zero, whoever had it before: memory that was supplied a
//! second time, static memory, and parts of a region that was used. Generated programs
//! ([`ops`](crate::ops)) do the same with buffers that were released.

use std::sync::Arc;

use bufcore::{Buf, BufferPool, Lease, MemoryProvider, Region, SharedRegion};
use bufkeeper::Trim;

use crate::source::{Lender, Loan};
use crate::trials::sources::Sourced;

/// Sizes on both sides of the sizes from which strategies look for untouched memory.
const SIZES: [usize; 10] = [0, 1, 63, 64, 1000, 4095, 4096, 4097, 20_000, 70_000];

/// Bytes of a region that is shared: more than the pools of a trial ask for at once.
const REGION_BYTES: usize = 4 << 20;

/// Asserts that the buffer is zero, and overwrites all of its memory.
#[track_caller]
fn dirty<L: Lease>(mut buf: Buf<L>, what: &str) -> Buf<L> {
    let len = buf.len();
    assert!(buf.iter().all(|byte| *byte == 0), "{what}: {len} bytes are not zero");
    buf.fill(0xA5);
    buf.spare_mut().fill(0xA5);
    buf
}

/// Checks that zeroed buffers of a pool over a source are zero: over memory that the source says
/// is not zeroed, and over a shared region that is static memory or was used before (T37).
pub fn t37_supplied<P: BufferPool + Trim>(kind: &Sourced<P>) {
    let lender = Arc::new(Lender::new(|_| Loan::Old));
    supplied(kind, &(lender as Arc<dyn MemoryProvider>), "old");
    let memory = Box::leak(vec![0xA5; REGION_BYTES].into_boxed_slice());
    let shared = SharedRegion::new(Region::from_static(memory));
    supplied(kind, &(Arc::new(shared) as Arc<dyn MemoryProvider>), "static");
    let shared = SharedRegion::new(Region::heap(REGION_BYTES, 4096).expect("the heap has room"));
    supplied(kind, &(Arc::new(shared.clone()) as Arc<dyn MemoryProvider>), "shared");
    let whole = shared.part(REGION_BYTES, 64).expect("all of it came back");
    let inner = Arc::new(SharedRegion::new(whole));
    supplied(kind, &(inner as Arc<dyn MemoryProvider>), "a part that is shared");
}

fn supplied<P: BufferPool + Trim>(kind: &Sourced<P>, source: &Arc<dyn MemoryProvider>, what: &str) {
    for _ in 0..2 {
        let mut pool = (kind.make)(Arc::clone(source)).expect("settings are right");
        for _ in 0..3 {
            let held: Vec<_> = kind
                .sizes
                .iter()
                .map(|bytes| dirty(pool.acquire_zeroed(*bytes).expect("there is room"), what))
                .collect();
            drop(held);
            pool.trim();
        }
    }
}

/// Checks that a region which a pool gives back is not taken to be zero by those that get it next:
/// another pool of the strategy, and the parts of a [`SharedRegion`] (T37).
pub fn t37_given_back<P: BufferPool>(build: impl Fn(Region) -> P, end: impl Fn(P) -> Region) {
    let heap = Region::heap(REGION_BYTES, 4096).expect("the heap has room");
    let memory = Box::leak(vec![0xA5; REGION_BYTES].into_boxed_slice());
    for region in [heap, Region::from_static(memory)] {
        let region = end(used(build(region)));
        let region = end(used(build(region)));
        let shared = SharedRegion::new(region);
        for _ in 0..2 {
            let parts: Vec<_> = (0..4)
                .map(|_| {
                    let part = shared.part(REGION_BYTES / 4 - 64, 64).expect("all of it came back");
                    // SAFETY: all of the part, which is initialised and nobody else's.
                    let bytes = unsafe { core::slice::from_raw_parts(part.as_ptr().as_ptr(), part.len()) };
                    assert!(bytes.iter().all(|byte| *byte == 0), "a part of a used region is not zero");
                    build(part)
                })
                .collect();
            // The parts of the second round are the memory that these pools had.
            parts.into_iter().for_each(|pool| drop(used(pool)));
        }
    }
}

/// Overwrites the memory of a pool.
fn used<P: BufferPool>(mut pool: P) -> P {
    for _ in 0..2 {
        let held: Vec<_> = SIZES
            .iter()
            .map(|bytes| dirty(pool.acquire_zeroed(*bytes).expect("there is room"), "built in a region"))
            .collect();
        drop(held);
    }
    pool
}
