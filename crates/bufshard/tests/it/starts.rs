//! Where buffers start: at a multiple of 16, of a cache line from 256 bytes on, and of what was
//! asked for.

use std::collections::HashSet;

use bufshard::{Builder, ShardPool};

const LINE: usize = 64;
/// From such a size class on, buffers start at cache lines.
const FROM: usize = 256;
/// The first requests of that class.
const CLASS_FROM: usize = 225;

/// Acquires and releases buffers of random sizes, and checks each start against `expected`. Returns
/// how many starts came up again.
fn check(builder: Builder, expected: impl Fn(usize) -> usize) -> usize {
    let pool = builder.build().expect("settings are right");
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut seen, mut again) = (HashSet::new(), 0);
    let mut held = Vec::new();
    for round in 0..testkit::trials::scaled(20_000).max(200) {
        let bytes = match round % 3 {
            0 => rng.usize(1..4 * FROM),
            1 => rng.usize(CLASS_FROM - 2..FROM + 3),
            _ => 1 << rng.usize(..18),
        };
        let buf = pool.acquire(bytes).expect("the allocator has room");
        let start = buf.as_ptr().addr();
        assert_eq!(start % expected(bytes), 0, "{bytes} bytes at {start:#x} with {builder:?}");
        again += usize::from(!seen.insert(start));
        held.push(buf);
        while held.len() > rng.usize(..40) {
            held.swap_remove(rng.usize(..held.len()));
        }
    }
    again
}

/// Where the class decides, and nothing smaller than the line was asked for.
fn by_class(bytes: usize) -> usize {
    if bytes < CLASS_FROM { 16 } else { LINE }
}

#[test]
fn lines_by_default() {
    assert!(check(ShardPool::builder(), by_class) > 0, "no buffer was used again");
}

/// Those that have no class go by their bytes.
#[test]
fn lines_outside_of_the_classes() {
    let by_bytes = |bytes: usize| if bytes < FROM { 16 } else { LINE };
    check(ShardPool::builder().largest_pooled(LINE), by_bytes);
    check(ShardPool::builder().smallest_pooled(1 << 20), by_bytes);
    check(ShardPool::builder().thread_cache(0).shard_buffers(0), by_class);
}

#[test]
fn a_smaller_alignment_keeps_the_lines() {
    for alignment in [1, 2, 16, 32] {
        let expected = |bytes| by_class(bytes).max(alignment);
        check(ShardPool::builder().alignment(alignment), expected);
    }
}

#[test]
fn a_larger_alignment_is_for_all() {
    for alignment in [LINE, 2 * LINE, 4096] {
        check(ShardPool::builder().alignment(alignment), |_bytes| alignment);
        check(ShardPool::builder().alignment(alignment).largest_pooled(LINE), |_bytes| alignment);
    }
}
