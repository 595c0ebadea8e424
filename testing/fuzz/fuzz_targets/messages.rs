//! Operations on a queue of messages and on a naive one.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::messages::run(data));
