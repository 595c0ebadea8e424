//! The numbers, against ones worked out by hand.

use buftrace::{Meta, SizeClass, Trace};

use crate::{acquire, release};

#[test]
fn numbers() {
    let events = vec![
        acquire(0, 0, 0, 100),
        acquire(10, 0, 1, 0),
        acquire(20, 1, 2, 128),
        release(100, 1, 0), // 100 ns, another thread
        acquire(110, 0, 0, 129),
        release(120, 1, 2),   // 100 ns
        release(1_000, 0, 1), // 990 ns
        acquire(6_400, 0, 1, 100),
    ];
    let summary = Trace::new(Meta::new("t"), events).unwrap().summary();
    assert_eq!((summary.acquires, summary.releases, summary.out_at_end), (5, 3, 2));
    assert_eq!((summary.threads, summary.cross_thread_releases), (2, 1));
    assert_eq!((summary.max_live, summary.max_live_bytes, summary.total_bytes), (3, 257, 457));
    assert_eq!((summary.distinct_sizes, summary.size_quantiles), (4, [100, 129, 129, 129]));
    let class = |up_to, acquires| SizeClass { up_to, acquires };
    assert_eq!(summary.sizes, [class(0, 1), class(128, 3), class(256, 1)]);
    let lifetimes = summary.lifetimes;
    assert_eq!((lifetimes.p50_ns, lifetimes.p90_ns, lifetimes.max_ns), (100, 990, 990));
    // 64 parts of 101 ns: all but the last two acquires and the last release are in the first two.
    assert_eq!(summary.live_bytes.len(), 64);
    assert_eq!(summary.live_bytes[..2], [228, 257]);
    assert!(summary.live_bytes[2..63].iter().all(|bytes| *bytes == 129));
    assert_eq!(summary.live_bytes[63], 229);
}

#[test]
fn of_nothing() {
    let summary = Trace::new(Meta::default(), vec![]).unwrap().summary();
    assert_eq!((summary.acquires, summary.max_live_bytes, summary.lifetimes.max_ns), (0, 0, 0));
    assert!(summary.to_string().contains("acquires"));
}
