//! Frames out of arbitrary bytes, which come in parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::frames::run(data));
