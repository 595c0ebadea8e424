//! `bufreader`: runs the cells, and reports.

use std::process::ExitCode;

fn main() -> ExitCode {
    bufreader::main()
}
