//! Trace files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| buffuzz::trace::run(data));
