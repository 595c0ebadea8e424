//! A recorder over the allocator sees the large blocks as they are.

use core::hint::black_box;
use std::path::Path;

use bufalloc::Large;
use buftrace::{Profile, RecordingAlloc, start_heap_recording, stop_heap_recording};

#[global_allocator]
static ALLOC: RecordingAlloc<Large> = RecordingAlloc::new(Large::new());

#[test]
#[cfg_attr(any(miri, not(target_os = "linux")), ignore = "recordings are of Linux processes")]
fn large_blocks_are_recorded() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded.heap");
    start_heap_recording(&path, "exact,min=32KiB").unwrap();
    let before = bufalloc::stats();
    for _ in 0..100 {
        let mut bytes = black_box(vec![1_u8; 256 << 10]);
        bytes.reserve_exact(bytes.len());
        drop(black_box(bytes));
    }
    stop_heap_recording();
    let taken = bufalloc::stats().faulted_bytes - before.faulted_bytes;
    assert!(taken >= 512 << 10, "{taken}: the blocks are not spans");
    let profile = Profile::load(&path).unwrap();
    let large = profile.objects().iter().filter(|object| object.largest == 512 << 10);
    assert_eq!(large.count(), 100);
}
