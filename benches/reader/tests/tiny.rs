//! The whole command over a small file.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::PathBuf;
use std::process::Command;

use bufreader::plan::{Plan, Results};
use buftrials::run::Scale;

#[test]
fn a_tiny_run_has_every_figure() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("reader-report");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufreader"));
    let output = command.args(["run", "--test", "--out"]).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Results = buftrials::results::read(&out).unwrap();
    let plan = Plan { scale: Scale::Test, rounds: 1, contestants: Vec::new() };
    assert_eq!(results.cells.len(), plan.cells().len());
    for (cell, rounds) in &results.cells {
        assert!(rounds.len() == 1 && rounds[0].reads > 0, "{cell:?}: {rounds:?}");
    }
    for file in ["report.md", "index.html", "reader.svg"] {
        assert!(out.join(file).metadata().unwrap().len() > 100, "{file}");
    }
}
