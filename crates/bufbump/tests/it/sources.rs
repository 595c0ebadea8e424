//! Pools whose memory a source of the program's supplies.

use std::sync::Arc;

use bufbump::bufcore::MemoryProvider;
use bufbump::{BumpPool, ConfigError, RegionError};
use testkit::source::{Lender, Loan};
use testkit::trials::sources::Sourced;

const PAGE: usize = 4096;

/// Pools that keep what comes back, that keep nothing, and with buffers that start at pages.
const KINDS: [Sourced<BumpPool>; 3] = [
    Sourced {
        make: |source| BumpPool::builder().shard_size(20_000).build_from(source),
        sizes: &[100, 15_000, 20_000, 30_000, 100_000],
    },
    Sourced {
        make: |source| BumpPool::builder().shard_size(3000).max_idle_bytes(0).build_from(source),
        sizes: &[10, 2900, 3000, 5000, 50_000],
    },
    Sourced {
        make: |source| BumpPool::builder().shard_size(20_000).alignment(PAGE).build_from(source),
        sizes: &[100, 20_000, 70_000],
    },
];

testkit::sourced!(KINDS);

/// All buffers are in the source's memory, which is whole pages.
#[test]
fn all_of_it() {
    for alignment in [16, 64, PAGE, 64 << 10] {
        let source = Arc::new(Lender::new(|_| Loan::Zeroed));
        let builder = BumpPool::builder().shard_size(40_000).alignment(alignment);
        let pool = builder.build_from(Arc::clone(&source) as Arc<dyn MemoryProvider>).expect("settings");
        for bytes in [1, 10_000, 40_000, 45_000, 100_000, 1_000_000] {
            let buf = pool.acquire(bytes).expect("it lends");
            assert_eq!(buf.as_ptr().addr() % alignment, 0);
            assert!(source.has_lent(buf.as_ptr(), bytes), "{bytes} bytes");
        }
        assert!(source.layouts().iter().all(|layout| layout.align() == PAGE && layout.size() % PAGE == 0));
    }
}

/// Shards that are there from the start come from it too.
#[test]
fn from_the_start() {
    let lender = Arc::new(Lender::new(|_| Loan::Zeroed));
    let builder = BumpPool::builder().shard_size(PAGE - 64).preallocate(3);
    let pool = builder.build_from(Arc::clone(&lender) as Arc<dyn MemoryProvider>).expect("it lends");
    assert_eq!((lender.out(), pool.stats().reserved_bytes), (3, 3 * PAGE));
    pool.trim();
    assert_eq!(lender.out(), 0);
    let refused = Lender::new(|_| Loan::Refused);
    assert_eq!(
        builder.build_from(Arc::new(refused)).map(drop),
        Err(ConfigError::Region(RegionError::OutOfMemory { requested: PAGE }))
    );
}
