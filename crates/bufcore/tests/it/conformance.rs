//! The suite over the heap pool.

use bufcore::{ConfigError, FrameWriter, HeapPool};

buftest::conformance! {
    name: heap,
    pool: HeapPool = HeapPool::new,
    frames: |_| None,
    is_fallback: |_| false,
    rejects: false,
    aligned: |bytes| HeapPool::new().with_alignment(bytes) as Result<_, ConfigError>,
}

// Frames over a pool that has none of its own.
buftest::conformance! {
    name: frames,
    pool: FrameWriter<HeapPool> = || FrameWriter::new(HeapPool::new()),
    frames: |pool| Some(pool),
    is_fallback: |_| false,
    rejects: false,
    share: 5,
}

mod split {
    use bufcore::HeapPool;
    use buftest::trials::parts;

    buftest::conformance_split! {
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
    use bufcore::{FrameWriter, HeapPool};

    #[test]
    fn t11_wiped() {
        buftest::trials::secrets::wiped(
            || FrameWriter::new(HeapPool::new().with_wipe(true)),
            |pool| Some(pool),
        );
    }
}
