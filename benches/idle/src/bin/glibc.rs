//! `bufidle` over the allocator of the system.

use std::process::ExitCode;

fn main() -> ExitCode {
    bufidle::main()
}
