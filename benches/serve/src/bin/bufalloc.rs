//! `bufserve` over the allocator of the system with bufalloc for large blocks.

#[global_allocator]
static ALLOCATOR: bufalloc::Large = bufalloc::Large::new();

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bufserve::main()
}

/// Nothing is measured elsewhere.
#[cfg(not(target_os = "linux"))]
fn main() {}
