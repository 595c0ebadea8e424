//! Operations on a slot pool over fallbacks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::slot::run(data));
