//! T5 and T18: what fails, fails with a typed error, and nothing is lost by it.

use std::fmt::Debug;
use std::time::Duration;

use bufcore::{AcquireError, BufferPool};

use crate::Kit;
use crate::process;

/// Half of what a processor addresses: those of 64 bits use 48 of them.
const HALF_OF_MEMORY: usize = (usize::MAX >> if cfg!(target_pointer_width = "64") { 17 } else { 1 }) + 1;
/// What no machine has, so that no request for it is served.
const NOBODY_HAS: usize =
    if cfg!(target_pointer_width = "64") { HALF_OF_MEMORY >> 7 } else { HALF_OF_MEMORY };

/// Sizes that nobody asks for in earnest.
const ABSURD: [usize; 10] = [
    1 << 31,
    (1 << 31) + 1,
    HALF_OF_MEMORY,
    HALF_OF_MEMORY + (usize::MAX >> 3) + 1,
    isize::MAX as usize - 4096,
    isize::MAX as usize - 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    usize::MAX - 1,
    usize::MAX,
];

/// Asserts that an error carries the numbers of the call.
#[track_caller]
fn check_error(error: AcquireError, asked: usize, max_capacity: usize) {
    let requested = match error {
        AcquireError::TooLarge { requested, limit } => {
            assert!(limit < requested, "{error} for {asked} bytes");
            requested
        }
        AcquireError::Exhausted { requested, .. } | AcquireError::OutOfMemory { requested } => {
            assert!(
                asked <= max_capacity,
                "{error}, which may never be otherwise: the limit is {max_capacity}"
            );
            requested
        }
        _ => panic!("unknown error {error}"),
    };
    assert_eq!(requested, asked, "{error}");
    assert!(error.to_string().contains(&asked.to_string()), "{error} does not name {asked}");
}

/// Checks that every size is served exactly or refused in the pool's own numbers, within a second,
/// and changes nothing (T5 for requests).
pub fn absurd_requests<P: BufferPool>(kit: &Kit<P>) {
    let page = process::page_bytes();
    let mut pool = (kit.make)();
    let max_capacity = pool.max_capacity();
    let ordinary = [0, 1, 3, 9, 17, page - 1, page, page + 1, (1 << 20) + 1];
    for asked in ordinary.into_iter().chain(ABSURD) {
        process::within(Duration::from_secs(1), "one request", || {
            match pool.acquire(asked) {
                Ok(mut buf) => {
                    assert!(buf.is_empty() && buf.capacity() >= asked, "{} of {asked}", buf.capacity());
                    assert!(asked <= max_capacity, "{asked} served over the limit of {max_capacity}");
                    // The ends are there.
                    if let [first, .., last] = buf.spare_mut() {
                        (*first, *last) = (1, 2);
                    }
                    let room = buf.capacity();
                    buf.commit(room);
                    assert!(asked < 2 || (buf[0], buf[room - 1]) == (1, 2));
                }
                Err(error) => {
                    check_error(error, asked, max_capacity);
                    assert!(asked > 0, "no bytes are always there");
                    assert!(kit.rejects || asked > 1 << 30, "{error}");
                }
            }
            assert!(asked < NOBODY_HAS || pool.acquire_zeroed(asked).is_err(), "{asked} zeroed bytes");
        });
        // Not changed by it: an ordinary buffer is still served, and is what was asked for.
        let zeroed = pool.acquire_zeroed(33).expect("a small request");
        assert_eq!(&zeroed[..], [0; 33]);
    }
}

/// Checks that every capacity gives a pool that has it, or an error (T5 for pools).
pub fn absurd_pools<P: BufferPool, E: Debug>(sized: impl Fn(usize) -> Result<P, E>) {
    let sizes = [0, 1, 9, 16, 17, isize::MAX as usize / 8 + 1];
    for bytes in sizes.into_iter().chain(ABSURD) {
        process::within(Duration::from_secs(1), "one construction", || match sized(bytes) {
            Ok(mut pool) => {
                assert!((1..NOBODY_HAS).contains(&bytes), "a pool of {bytes} bytes exists");
                assert!(pool.max_capacity() >= bytes, "{} of {bytes} bytes", pool.max_capacity());
                let mut buf = pool.acquire(bytes).expect("a fresh pool serves its capacity");
                if let [first, .., last] = buf.spare_mut() {
                    (*first, *last) = (1, 2);
                }
            }
            Err(_) => assert!(bytes == 0 || bytes > 1 << 20, "{bytes} bytes were refused"),
        });
    }
}

/// Checks that constructions which the system refuses are errors, and leave nothing behind (T18).
/// It runs alone.
#[cfg(target_os = "linux")]
pub fn failing_constructions<P: BufferPool, E: Debug>(sized: impl Fn(usize) -> Result<P, E>) {
    const BYTES: usize = 64 << 20;
    drop(sized(BYTES).expect("there is room without a limit"));
    process::limit(libc::RLIMIT_AS, process::address_space_bytes() as u64 + (BYTES as u64) / 2);
    // Once for what the first failure sets up.
    assert!(sized(BYTES).is_err(), "a pool beyond the limit");
    let (files, space) = (process::open_files(), process::address_space_bytes());
    for _ in 0..1000 {
        assert!(sized(BYTES).is_err(), "a pool beyond the limit");
    }
    assert_eq!(process::open_files(), files, "descriptors leaked");
    let grown = process::address_space_bytes().saturating_sub(space);
    assert!(grown < 1 << 20, "{grown} bytes of address space leaked by 1000 failures");
    drop(sized(1 << 16).expect("what fits the limit is still built"));
}
