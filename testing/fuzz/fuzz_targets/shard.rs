//! Operations on a sharded pool.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::shard::run(data));
