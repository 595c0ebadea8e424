//! Arbitrary bytes in the header of a shared ring.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::header::run(data));
