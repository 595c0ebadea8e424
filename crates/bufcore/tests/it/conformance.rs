//! The suite over the heap pool.

use bufcore::{ConfigError, HeapPool};

buftest::conformance! {
    name: heap,
    pool: HeapPool = HeapPool::new,
    frames: |_| None,
    is_fallback: |_| false,
    rejects: false,
    aligned: |bytes| HeapPool::new().with_alignment(bytes) as Result<_, ConfigError>,
}

#[cfg(feature = "wipe")]
mod wiping {
    use bufcore::HeapPool;

    #[test]
    fn t11_wiped() {
        buftest::trials::secrets::wiped(|| HeapPool::new().with_wipe(true), |_| None);
    }
}
