//! Pools whose memory a source of the program's supplies.

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
        make: |source| ShardPool::builder().largest_pooled(64 << 10).build_from(source),
        sizes: &[10_000, 10_000, 64 << 10, 100_000],
    },
    Sourced {
        make: |source| ShardPool::builder().thread_cache(0).shards(1).shard_buffers(0).build_from(source),
        sizes: &[5000, 6000, 100_000],
    },
    Sourced {
        make: |source| ShardPool::builder().alignment(PAGE).max_bytes(1 << 20).build_from(source),
        sizes: &[PAGE, 20_000, 70_000],
    },
];

testkit::sourced!(KINDS);

/// All buffers are in the source's memory, which is whole pages.
#[test]
fn all_of_it() {
    for alignment in [16, PAGE, 2 * PAGE] {
        let source = Arc::new(Lender::new(|_| Loan::Zeroed));
        let builder = ShardPool::builder().alignment(alignment).largest_pooled(100_000);
        let pool = builder.build_from(Arc::clone(&source) as Arc<dyn MemoryProvider>).expect("settings");
        for bytes in [1, 1000, 5000, 50_000, 64 << 10, 300_000] {
            let buf = pool.acquire(bytes).expect("it lends");
            assert!(source.has_lent(buf.as_ptr(), bytes), "{bytes} bytes");
            assert_eq!(buf.as_ptr().addr() % alignment, 0);
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
    let pool = builder.build_from(Arc::clone(&lender) as Arc<dyn MemoryProvider>).expect("settings");
    refuses.store(true, SeqCst);
    for _ in 0..10 {
        let requested = 150_000;
        assert_eq!(pool.acquire(requested).map(drop), Err(AcquireError::OutOfMemory { requested }));
    }
    refuses.store(false, SeqCst);
    assert_eq!(pool.acquire(150_000).expect("nothing is out").capacity(), 150_000);
}
