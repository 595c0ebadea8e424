//! Pools whose large blocks a source of the program's supplies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use bufshard::bufcore::MemoryProvider;
use bufshard::{AcquireError, ShardPool};
use testkit::source::{Lender, Loan};
use testkit::trials::sources::Sourced;

const PAGE: usize = 4096;

/// Pools that keep what comes back, that keep nothing, and with headers apart.
const KINDS: [Sourced<ShardPool>; 3] = [
    Sourced {
        make: |source| ShardPool::builder().largest_pooled(64 << 10).build_from(source, 5000),
        sizes: &[10_000, 10_000, 64 << 10, 100_000],
    },
    Sourced {
        make: |source| ShardPool::builder().thread_cache(0).shards(1).shard_buffers(0).build_from(source, 1),
        sizes: &[5000, 6000, 100_000],
    },
    Sourced {
        make: |source| ShardPool::builder().alignment(PAGE).max_bytes(1 << 20).build_from(source, 1),
        sizes: &[PAGE, 20_000, 70_000],
    },
];

testkit::sourced!(KINDS);

/// From the size on that was asked for, buffers are in the source's memory, which is whole pages.
#[test]
fn from_a_size_on() {
    for (alignment, from) in [(16, 1), (16, 60_000), (PAGE, 1), (PAGE, 1 << 20), (2 * PAGE, 1)] {
        let source = Arc::new(Lender::new(|_| Loan::Zeroed));
        let builder = ShardPool::builder().alignment(alignment).largest_pooled(100_000);
        let pool =
            builder.build_from(Arc::clone(&source) as Arc<dyn MemoryProvider>, from).expect("settings");
        // Rounded up to pages, and at most 64 KiB where headers are apart.
        let least = from.next_multiple_of(PAGE).min(if alignment == PAGE { 64 << 10 } else { usize::MAX });
        for bytes in [1, 1000, 5000, 50_000, 64 << 10, 300_000] {
            let buf = pool.acquire(bytes).expect("it lends");
            let is_lent = source.has_lent(buf.as_ptr(), bytes);
            // Pages have no larger alignment.
            assert_eq!(is_lent, bytes >= least && alignment <= PAGE, "{bytes} bytes, from {from} on");
        }
        assert!(source.layouts().iter().all(|layout| layout.align() == PAGE && layout.size() % PAGE == 0));
    }
}

/// The budget is whole again after a refusal and a panic: what was counted for the block is given
/// back.
#[test]
fn a_refusal_leaves_the_budget() {
    let refuses = Arc::new(AtomicBool::new(false));
    let is_refused = Arc::clone(&refuses);
    // ORDER: SeqCst, for ease, here and below.
    let lender = Arc::new(Lender::new(move |_| match is_refused.load(SeqCst) {
        true => std::panic::resume_unwind(Box::new("on purpose")),
        false => Loan::Old,
    }));
    let builder = ShardPool::builder().max_bytes(200_000);
    let pool = builder.build_from(Arc::clone(&lender) as Arc<dyn MemoryProvider>, 1).expect("settings");
    refuses.store(true, SeqCst);
    for _ in 0..10 {
        let requested = 150_000;
        assert_eq!(pool.acquire(requested).map(drop), Err(AcquireError::OutOfMemory { requested }));
    }
    refuses.store(false, SeqCst);
    assert_eq!(pool.acquire(150_000).expect("nothing is out").capacity(), 150_000);
}
