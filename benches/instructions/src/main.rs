//! `bufcount`: compares instructions per operation with the checked-in counts. `cargo xtask bench --instructions` counts, and starts it.
#![allow(
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use bufcount::gate;
use clap::Parser;

/// Compare instructions per operation with the checked-in counts.
#[derive(Debug, Parser)]
#[command(name = "bufcount")]
struct Command {
    /// The file with the output of gungraun.
    #[arg(long, value_name = "FILE")]
    summaries: PathBuf,
    /// The file with the checked-in counts.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Write the counts to that file.
    #[arg(long)]
    update: bool,
}

fn main() -> ExitCode {
    let Command { summaries, baseline, update } = Command::parse();
    match gate::check(&summaries, &baseline, update) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
