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

/// Frames over a pool that has none of its own. Not the whole suite, since an open frame is a buffer that is out of that pool.
mod frames {
    use super::*;
    use buftest::{Kit, trials};

    const KIT: Kit<FrameWriter<HeapPool>> = Kit {
        make: || FrameWriter::new(HeapPool::new()),
        frames: |pool| Some(pool),
        is_fallback: |_| false,
        rejects: false,
        share: 5,
    };

    #[test]
    fn t02_every_way_to_make_a_buffer() {
        trials::traffic::every_way(&KIT);
    }

    #[test]
    fn t03_failed_frames_change_nothing() {
        trials::failure::failed_frames(&KIT);
    }

    #[test]
    fn t31_capacity_is_what_was_asked_for() {
        trials::room::t31_exact(&KIT);
    }

    #[test]
    fn t32_grown_and_compacted() {
        trials::room::t32_grown_and_compacted(&KIT);
    }

    #[test]
    fn t33_frames_cut_short() {
        trials::room::t33_frames_cut_short(&KIT);
    }
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
