//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing
//! aborts.
//!
//! For binaries with [`Failing`] as global allocator, so nothing here allocates while it is armed.

use bufcore::{AcquireError, Buf, BufferPool, Lease, SplitLease};

use super::filled;
use crate::alloc::Failing;
use crate::pattern;

/// Acquires and fills a buffer of each size, and then checks them all. `None` for those that
/// failed, which `failures` is raised by.
pub fn fill_all<P: BufferPool, const N: usize>(
    pool: &mut P,
    sizes: [usize; N],
    failures: &mut usize,
) -> [Option<Buf<P::Lease>>; N] {
    let mut held = [const { None }; N];
    for ((seed, place), bytes) in (0_u64..).zip(&mut held).zip(sizes) {
        match filled(pool, bytes, seed) {
            Ok(buf) => *place = Some(buf),
            Err(error) => {
                assert_eq!(error, AcquireError::OutOfMemory { requested: bytes });
                *failures += 1;
            }
        }
    }
    check_all(&held);
    held
}

/// Checks the bytes of buffers that [`fill_all`] filled.
pub fn check_all<L: Lease>(held: &[Option<Buf<L>>]) {
    for (seed, buf) in (0_u64..).zip(held) {
        if let Some(buf) = buf {
            pattern::check(buf, seed, 0);
        }
    }
}

/// Splits, freezes, clones and slices what [`fill_all`] filled first: none of it needs memory.
pub fn take_apart<L: SplitLease>(mut buf: Buf<L>) {
    let front = buf.split_to(700);
    let view = buf.freeze();
    let parts = [view.clone(), view.slice(..100)];
    drop(view);
    pattern::check(&front, 0, 0);
    pattern::check(&parts[0], 0, 700);
}

/// Runs `program`, which returns how many of its steps failed, on a new pool for every number of
/// allocations that succeed, until none is refused, which is not before `least`. `silent` is how
/// many refusals may show in no failure. `is_whole` is asked afterwards whether the pool is as good
/// as new.
pub fn every_allocation<P: BufferPool>(
    make: impl Fn() -> P,
    program: impl Fn(&mut P) -> usize,
    least: usize,
    silent: usize,
    is_whole: impl Fn(&P) -> bool,
) {
    // What a thread sets up once.
    drop(make().acquire(1));
    for allowed in 0.. {
        let mut pool = make();
        let (failures, refused) = Failing::after(allowed, || program(&mut pool));
        assert!(failures <= refused, "{failures} failures of {refused} refusals");
        assert!(failures > 0 || refused <= silent, "{failures} failures of {refused} refusals");
        assert!(is_whole(&pool), "something was lost by failure {allowed}");
        assert_eq!(program(&mut pool), 0);
        if refused == 0 {
            assert!(allowed >= least, "the program allocates");
            return;
        }
    }
}
