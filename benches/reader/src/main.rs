//! `bufreader`: runs the cells, and reports.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bufreader::main()
}

/// Nothing is measured elsewhere.
#[cfg(not(target_os = "linux"))]
fn main() {}
