//! Operations on mirrored rings and on a `VecDeque`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::mirror::run(data));
