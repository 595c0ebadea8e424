//! `bufserve` over the allocator of the system.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bufserve::main()
}

/// Nothing is measured elsewhere.
#[cfg(not(target_os = "linux"))]
fn main() {}
