//! Operations on a ring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::ring::run(data));
