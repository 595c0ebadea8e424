//! `bufserve` over jemalloc.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bufserve::main()
}

/// Nothing is measured elsewhere.
#[cfg(not(target_os = "linux"))]
fn main() {}
