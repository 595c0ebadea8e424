//! Texts of `AnyBuilder`, and small pools built from them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::builder::run(data));
