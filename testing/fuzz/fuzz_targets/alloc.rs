//! Operations on the allocator of large blocks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::alloc::run(data));
