//! The whole command with four clients over one allocator.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::Path;
use std::process::Command;

use bufidle::engine::{Allocator, Engine};
use bufidle::record::Results;

#[test]
fn a_tiny_run_has_every_figure() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("idle-report");
    let files = ["report.md", "index.html", "idle-glibc.svg", "front.svg"];
    let program = env!("CARGO_BIN_EXE_bufidle");
    let results: Results = buftrials::results::of_tiny_run(program, &["--allocator", "glibc"], &out, &files);
    for engine in Engine::all() {
        let run = results.runs(engine, Allocator::Glibc).next().unwrap();
        let name = engine.title();
        assert!(run.before > 0 && run.idle > 0 && run.peak >= run.before, "{name}: {run:?}");
        assert!(run.busy.requests > 0 && run.after.requests > 0, "{name}: {run:?}");
        let phases: Vec<&str> = run.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(phases, ["start", "burst", "small frames", "silence", "small frames"], "{name}");
        assert!(run.phases.windows(2).all(|two| two[0].to <= two[1].from), "{name}: {:?}", run.phases);
        assert!(run.samples.len() > 2, "{name}: {:?}", run.samples);
    }
    // A buffer for each connection is what stays.
    let grown = |engine| {
        let run = results.runs(engine, Allocator::Glibc).next().unwrap();
        run.idle.saturating_sub(run.before)
    };
    assert!(grown(Engine::BytesMut) > 3 << 20, "four of 1 MiB");

    assert!(results.budget.iter().all(|run| run.failure.is_none() && run.answered == run.clients));
    let bounded: Vec<_> =
        results.budget.iter().filter_map(|run| Some((run.pool_peak?, run.budget?))).collect();
    assert_eq!(bounded.len(), 1, "{:?}", results.budget);
    assert!(bounded.iter().all(|&(peak, budget)| peak > 1 << 20 && peak <= budget), "{bounded:?}");
}

/// A server that has no bound says so, and does not pretend to.
#[test]
fn budgets_are_for_pools_that_wait() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufidle"));
    let output = command.args(["serve", r#"{"engine":"codec","budget":1000}"#]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Codec has no budget"));
}
