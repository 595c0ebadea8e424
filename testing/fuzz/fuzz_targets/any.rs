//! Operations on a pool whose strategy is chosen at run time.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::any::run(data));
