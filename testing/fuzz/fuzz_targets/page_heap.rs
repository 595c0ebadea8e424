//! Operations on a page heap.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::page_heap::run(data));
