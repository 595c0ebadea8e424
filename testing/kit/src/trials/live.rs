//! What some buffers that are out take of the system, with all that their pool takes beside them.

use crate::process::resident_bytes;

/// The number of buffers of a pool that are out.
pub const LIVE: usize = 1024;

/// Measures the resident bytes of each of [`LIVE`] buffers in a list, with its place on the list
/// and its share of what `pool` makes for them: the mean over several lists. Only processes that do
/// nothing else call it; see [`alone`](crate::process::alone).
///
/// Nothing is freed, so that what is measured next finds no memory that was used before.
pub fn resident_each<P, T>(bytes: usize, pool: impl Fn() -> P, acquire: impl Fn(&mut P) -> T) -> f64 {
    // A page more or less is nothing then.
    let count = ((8 << 20) / (LIVE * bytes)).clamp(8, 64);
    let list = || {
        let mut pool = pool();
        let mut list = Vec::with_capacity(LIVE);
        list.extend((0..LIVE).map(|_| acquire(&mut pool)));
        (pool, list)
    };
    let mut lists = Vec::with_capacity(count + 1);
    // What a process pays once.
    lists.push(list());
    let before = resident_bytes();
    lists.extend((0..count).map(|_| list()));
    let after = resident_bytes();
    core::mem::forget(lists);
    after.saturating_sub(before) as f64 / (count * LIVE) as f64
}
