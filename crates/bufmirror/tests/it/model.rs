//! Generated programs on a ring and on a `VecDeque`.

use proptest::collection::vec;
use proptest::prelude::*;
use testkit::bytes::Bytes;

use crate::program::run;
use crate::ring::ends;

proptest! {
    // Builds with a defect fail on purpose, and are not to leave their cases to the sound one.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mapped_ring_is_a_queue(program in vec(any::<u8>(), 1..800)) {
        run(crate::mapped(1), &mut Bytes::new(&program));
    }

    #[test]
    fn a_channel_is_a_queue(program in vec(any::<u8>(), 1..800)) {
        run(ends(1), &mut Bytes::new(&program));
    }

    #[test]
    fn a_copying_ring_is_a_queue(capacity in 1..5000usize, program in vec(any::<u8>(), 1..800)) {
        run(crate::copying(capacity), &mut Bytes::new(&program));
    }
}
