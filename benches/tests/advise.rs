//! `bufbench advise` from a file to its advice, with a few replays only.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use buftrace::{Event, EventKind, Meta, Trace};
use serde_json::Value;

/// A fresh folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("advise-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn advise(trace: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufbench"));
    command.arg("advise").arg(trace).arg("--test").arg("--out").arg(out).args(more);
    command.output().expect("the program starts")
}

/// One thread takes sixteen buffers, gives every other one back to another thread, and takes larger
/// ones that fit into what is free, but into none of the gaps. Over and over.
fn gaps() -> Trace {
    let mut events = Vec::new();
    let mut push = |thread, kind| events.push(Event { at_ns: events.len() as u64, thread, kind });
    for _ in 0..10 {
        for id in 0..16 {
            push(0, EventKind::Acquire { id, bytes: 1000 });
        }
        for id in (0..16).step_by(2) {
            push(1, EventKind::Release { id });
        }
        for id in [0, 2, 4, 6] {
            push(0, EventKind::Acquire { id, bytes: 2000 });
        }
        for id in (0..16).filter(|id| id % 2 == 1 || *id < 8) {
            push(1, EventKind::Release { id });
        }
    }
    Trace::new(Meta::new("gaps"), events).expect("a right trace")
}

#[test]
fn who_is_too_small_is_reported_and_not_taken() {
    let folder = folder("gaps");
    let trace = folder.join("gaps.buftrace");
    fs::write(&trace, gaps().encode()).expect("the trace is written");
    let output = advise(&trace, &folder, &["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let advice: Value = serde_json::from_str(&printed).expect("JSON is printed, and nothing else");
    assert_eq!(advice["schema"], 1);
    assert_eq!(advice["needs"]["own_bytes"], 16_000);
    let entries = advice["entries"].as_array().expect("entries");
    let refused = |entry: &Value| entry["refused"].as_f64().expect("a share");
    // Of the 200 requests, most of the 40 large ones find no gap where there is hardly more memory
    // than was out.
    let small = entries.iter().find(|entry| entry["id"] == "slot-16-16384").expect("the smallest pool");
    let exhausted = small["counted"]["refused"]["exhausted"].as_u64().expect("a count");
    assert!((21..=40).contains(&exhausted), "{small}");
    assert!((refused(small) * 200.0 - exhausted as f64).abs() < 1e-9, "{small}");
    let large = entries.iter().find(|entry| entry["id"] == "slot-32-65536").expect("the largest pool");
    assert_eq!(refused(large), 0.0, "{large}");
    let pick = &entries[advice["choice"]["pick"].as_u64().expect("a number") as usize];
    assert_eq!(refused(pick), 0.0, "{pick}");
    for strategy in ["slot", "ring", "bump", "shard", "heap", "vec"] {
        assert!(entries.iter().any(|entry| entry["strategy"] == strategy), "{strategy}");
    }
    for entry in entries {
        assert!(entry["times"]["median"].as_f64().expect("timed") > 0.0, "{entry}");
        assert!(entry["stage"] != 3 || entry["tail"]["p99"].as_u64().expect("timed") > 0, "{entry}");
    }
    let written = fs::read_to_string(folder.join("advice.json")).expect("the file is written");
    assert_eq!(written, printed);
    let picture = fs::read_to_string(folder.join("advice.svg")).expect("the picture is written");
    assert!(picture.starts_with("<svg") && picture.contains("→ "), "the choice is marked");
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = folder("broken");
    let mut file = gaps().encode();
    file.truncate(file.len() - 1);
    let empty = Trace::new(Meta::new("empty"), Vec::new()).expect("a right trace").encode();
    for (name, bytes, what) in [
        ("cut", file, "trace ends too early"),
        ("text", b"hello".into(), "not a buffer trace"),
        ("empty", empty, "no thread asks"),
    ] {
        let trace = folder.join(name);
        fs::write(&trace, bytes).expect("the file is written");
        let output = advise(&trace, &folder, &[]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(what), "{name}: {errors}");
        assert!(!folder.join("advice.json").exists(), "{name}");
    }
    let missing = advise(&folder.join("missing"), &folder, &[]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read"));
}
