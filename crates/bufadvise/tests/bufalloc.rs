//! Recordings of a program over bufalloc are read, and the advice names it where most bytes are in large blocks.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use bufalloc::Large;
use buftrace::{RecordingAlloc, start_heap_recording, stop_heap_recording};
use serde_json::Value;

#[global_allocator]
static ALLOC: RecordingAlloc<Large> = RecordingAlloc::new(Large::new());

/// The advice for a program that has a hundred vectors, each of which grows.
fn advice(bytes: usize) -> Value {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bufalloc-{bytes}.heap"));
    start_heap_recording(&path, "exact,min=4KiB").expect("a recording");
    for _ in 0..100 {
        let mut bytes = black_box(vec![1_u8; bytes]);
        bytes.reserve_exact(bytes.len());
        drop(black_box(bytes));
    }
    stop_heap_recording();
    let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    let output = program.args(["advise", "--test", "--json"]).arg(path).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[test]
fn large_blocks_are_recorded_and_named() {
    for (bytes, is_named) in [(256 << 10, true), (8 << 10, false)] {
        let advice = advice(bytes);
        let site = &advice["call_sites"][0];
        assert_eq!((&site["count"], &site["grown"]), (&100.0.into(), &100.0.into()), "{advice}");
        assert_eq!(site["largest"].as_u64(), Some(2 * bytes as u64), "{site}");
        let why = advice["why"].as_array().expect("reasons");
        let names = why.iter().any(|reason| reason.as_str().is_some_and(|text| text.contains("`bufalloc`")));
        assert_eq!(names, is_named, "{why:?}");
    }
}
