//! Instructions, mispredicted branches and cache misses per operation, counted by callgrind through gungraun. `cargo xtask bench
//! --instructions` runs it and compares what it finds with `benches/instructions/instructions.json`.
#![allow(missing_docs, reason = "gungraun's macros make modules without documentation")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use bufcount::{Work, prepare, runs};
use gungraun::{Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};

// One run. Preparing it and dropping it afterwards are not counted.
#[library_benchmark]
#[benches::run(iter = runs(), setup = prepare)]
fn operation(mut work: Box<dyn Work>) -> Box<dyn Work> {
    work.work();
    work
}

library_benchmark_group!(name = instructions, benchmarks = operation);

// The cache is simulated unless that is turned off.
main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--branch-sim=yes"])),
    library_benchmark_groups = instructions
);
