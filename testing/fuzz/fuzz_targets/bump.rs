//! Operations on a bump pool.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::bump::run(data));
