//! The suite over the heap pool.

use bufcore::{ConfigError, HeapPool};

testkit::conformance! {
    name: heap,
    pool: HeapPool = HeapPool::new,
    is_fallback: |_| false,
    rejects: false,
    aligned: |bytes| HeapPool::new().with_alignment(bytes) as Result<_, ConfigError>,
}

mod split {
    use bufcore::HeapPool;
    use testkit::trials::parts;

    testkit::conformance_split! {
        pool: HeapPool = HeapPool::new,
    }

    #[test]
    fn many_parts() {
        parts::many_parts(HeapPool::new());
    }

    #[test]
    fn late() {
        parts::large_and_late(HeapPool::new(), |_| true, usize::from(cfg!(feature = "stats")));
    }
}

#[cfg(feature = "wipe")]
mod wiping {
    use bufcore::HeapPool;

    #[test]
    fn t11_wiped() {
        testkit::ops::run_wiping(|| HeapPool::new().with_wipe(true));
    }
}
