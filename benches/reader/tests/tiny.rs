//! The whole command over a small file.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::Path;

use bufreader::plan::{Plan, Results};
use buftrials::run::Scale;

#[test]
fn a_tiny_run_has_every_figure() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reader-report");
    let files = ["report.md", "index.html", "reader.svg"];
    let program = env!("CARGO_BIN_EXE_bufreader");
    let results: Results = buftrials::results::of_tiny_run(program, &[], &out, &files);
    let plan = Plan { scale: Scale::Test, rounds: 1, engines: Vec::new() };
    assert_eq!(results.cells.len(), plan.cells().len());
    for (cell, rounds) in &results.cells {
        assert!(rounds.len() == 1 && rounds[0].reads > 0, "{cell:?}: {rounds:?}");
    }
}
