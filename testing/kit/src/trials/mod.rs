//! The trials, generic over the strategy. Each broke a published crate of this field, from safe
//! code.

pub mod books;
pub mod clones;
pub mod contents;
pub mod costs;
pub mod erased;
pub mod failure;
pub mod fallbacks;
pub mod keeper;
pub mod lifetime;
#[cfg(target_os = "linux")]
pub mod live;
#[cfg(target_os = "linux")]
pub mod memory;
pub mod moved;
#[cfg(target_os = "linux")]
pub mod pages;
pub mod parts;
pub mod reentry;
pub mod refusals;
pub mod refusing;
pub mod room;
pub mod secrets;
pub mod serving;
pub mod sources;
#[cfg(target_os = "linux")]
pub mod system;
pub mod thresholds;
pub mod traffic;
pub mod zeroed;

use std::env;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool};
use bufkeeper::Trim;

use crate::model::Shadow;
use crate::pattern;

/// Returns how many buffers a trial of the size `full` uses: two of twenty-five in release, and a
/// fiftieth in debug builds and in programs for sanitizers ([`races`](crate::races)). Wherever
/// `BUFTEST_COUNT` is set, that says it (as the size of the largest trial, 1 000 000).
pub fn scaled(full: usize) -> usize {
    const FULL: usize = 1_000_000;
    let largest = match env::var("BUFTEST_COUNT") {
        Ok(text) => text.parse().expect("BUFTEST_COUNT is a number"),
        Err(_) if cfg!(debug_assertions) || Shadow::is_off() => FULL / 50,
        // A fiftieth finds every known defect; this is four times as much.
        Err(_) => FULL * 2 / 25,
    };
    (full as u128 * largest as u128 / FULL as u128).max(64) as usize
}

/// Trims a pool, as [`Kit::trim`](crate::Kit::trim) says.
pub fn trim<P: Trim>(pool: &mut P, age: Option<Duration>) {
    match age {
        Some(age) => pool.trim_idle(age),
        None => pool.trim(),
    }
}

/// Acquires a buffer of `bytes` bytes, and fills it with those of `seed`.
pub(crate) fn filled<P: BufferPool>(
    pool: &mut P,
    bytes: usize,
    seed: u64,
) -> Result<Buf<P::Lease>, AcquireError> {
    let mut buf = pool.acquire(bytes)?;
    assert!(buf.is_empty() && buf.capacity() >= bytes, "{} of {bytes} bytes", buf.capacity());
    pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
    buf.commit(bytes);
    Ok(buf)
}
