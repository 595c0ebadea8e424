//! This process as the system sees it.

use std::fs;

/// Brings the system's allocator into the state of a program that has run for a while, whoever else
/// is in the row.
///
/// glibc gives memory at the heap's end back to the kernel, and takes large blocks from it
/// directly, up to thresholds that rise for good when such a block is freed for the first time.
/// Otherwise it would depend on the other contestants whether `vec` faults its pages in again and
/// again.
pub fn settle_heap() {
    /// The largest block that glibc raises its thresholds for is 32 MiB.
    const BYTES: usize = 31 << 20;
    drop(core::hint::black_box(Vec::<u8>::with_capacity(BYTES)));
}

/// A field of the process's status, in bytes.
pub(crate) fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
