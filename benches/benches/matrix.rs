//! `cargo bench`: the cells of the matrix as criterion benchmarks, for criterion's statistics and its comparison with the
//! run before. The same cells as in `cargo xtask bench`, so a name such as `reuse/64B/slot` selects the same code:
//!
//! ```text
//! cargo bench -p bufbench -- reuse/64B
//! cargo bench -p bufbench --features peers -- 'burst/.*/(slot|buffer_sv2)'
//! ```
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::time::Duration;

use bufbench::harness::measure::Scale;
use bufbench::harness::process::settle_heap;
use bufbench::workloads::cases;
use bufbench::{Case, Cell, Contestant, Kind, adapters};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};

fn main() {
    settle_heap();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for case in cases(Scale::Quick) {
        let mut group = criterion.benchmark_group(case.id());
        for contestant in adapters::all().into_iter().filter(|contestant| contestant.takes_part(&case)) {
            cell(&mut group, &case, &contestant);
        }
        group.finish();
    }
    criterion.final_summary();
}

fn cell(group: &mut BenchmarkGroup<'_, WallTime>, case: &Case, contestant: &Contestant) {
    let refused = match case {
        // Whether a pool of equal buffers becomes too large shows only when it is built.
        Case::Replay { .. } => contestant.cell(case).err(),
        // And so does whether a ring without settings has room for frames.
        Case::Frame { .. } | Case::RingExtend { .. } if contestant.kind == Kind::Default => {
            contestant.cell(case).err()
        }
        _ => contestant.refusal(case),
    };
    if let Some(reason) = refused {
        eprintln!("{case}: {} is left out: {}", contestant.name, reason.0);
        return;
    }
    if let Case::Handoff { bytes } | Case::File { bytes, .. } = case {
        group.throughput(Throughput::Bytes(*bytes as u64));
    }
    // Built with the first measurement, so that a cell which the command line leaves out costs
    // nothing.
    let mut built: Option<Box<dyn Cell>> = None;
    group.bench_function(contestant.name, |bencher| {
        let cell = built.get_or_insert_with(|| ready(case, contestant));
        // Criterion counts iterations; here they are what the matrix calls operations.
        let each = cell.operations();
        bencher.iter_custom(|operations| {
            let iterations = operations.div_ceil(each);
            cell.run(iterations).mul_f64(operations as f64 / (iterations * each) as f64)
        });
    });
}

/// Builds a cell and checks it.
fn ready(case: &Case, contestant: &Contestant) -> Box<dyn Cell> {
    let built =
        contestant.cell(case).unwrap_or_else(|reason| panic!("{case}, {}: {}", contestant.name, reason.0));
    let mut cell = built;
    if let Err(what) = cell.check() {
        panic!("{case}, {}: wrong bytes: {what}", contestant.name);
    }
    cell
}
