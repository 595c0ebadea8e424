//! Receives batches of datagrams into one buffer each and splits them without a copy, beside a copy of each datagram.
//!
//! ```text
//! cargo run --release -p bufworks-examples --bin datagrams
//! ```

use anyhow::Result;
use bufshard::ShardPool;
use bufworks_examples::datagrams::{Copies, Report, Views, run};
use clap::Parser;

/// Receives batches of datagrams, split without a copy and by copying.
#[derive(Debug, Parser)]
#[command(name = "datagrams")]
struct Args {
    /// Batches for each way
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000)]
    batches: usize,
    /// Bytes of each datagram
    #[arg(long, value_name = "BYTES", default_value_t = 1200)]
    size: usize,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let size = args.size.clamp(2, 8192);
    for round in 1..=3 {
        print("views", round, run(Views(ShardPool::new()?), args.batches, size)?);
        print("copies", round, run(Copies::default(), args.batches, size)?);
    }
    Ok(())
}

fn print(way: &str, round: usize, report: Report) {
    let each = report.time.as_nanos() / report.datagrams.max(1) as u128;
    let Report { datagrams, batches, .. } = report;
    println!(
        "round {round}, {way:6}: {datagrams} datagrams in {batches} batches, {each} ns for each to receive and split"
    );
}
