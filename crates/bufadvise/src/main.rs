//! `bufadvise`: which buffer pool fits a recorded program, or none.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bufadvise::run(std::env::args_os())
}
