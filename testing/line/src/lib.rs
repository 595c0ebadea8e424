//! The line, for test programs of others (`cargo xtask foreign`). At its end, such a program says how many bytes of large blocks it had.

extern crate std;

use bufalloc::Large;

/// From a page on, so that small tests have large blocks too.
#[global_allocator]
static ALLOC: Large = Large::new().threshold(4 << 10);

#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static LAST: extern "C" fn() = last;

#[cfg(target_os = "linux")]
extern "C" fn last() {
    std::eprintln!("the line had {} bytes", bufalloc::stats().most_resident_bytes);
}
