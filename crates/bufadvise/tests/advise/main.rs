//! `bufadvise` from a file to its answer, with a few replays only.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

#[cfg(target_os = "linux")]
mod heap;
#[cfg(target_os = "linux")]
mod objects;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod verdicts;

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

fn bufadvise(command: &str, arguments: &[&Path], more: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    program.arg(command).args(arguments).args(more);
    program.output().expect("the program starts")
}

fn advise(trace: &Path, more: &[&str]) -> Output {
    bufadvise("advise", &[trace], &[&["--test"][..], more].concat())
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&printed(output)).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// A trace of these events, `step_ns` apart: a thread, an id, and bytes where it is an acquire.
fn write(folder: &Path, name: &str, step_ns: u64, events: &[(u32, u32, Option<u64>)]) -> PathBuf {
    let event = |(at, &(thread, id, bytes)): (u64, &(u32, u32, Option<u64>))| {
        let kind = bytes.map_or(EventKind::Release { id }, |bytes| EventKind::Acquire { id, bytes });
        Event { at_ns: at * step_ns, thread, kind }
    };
    let events = (0..).zip(events).map(event).collect();
    let path = folder.join(name).with_extension("buftrace");
    Trace::new(Meta::new(name), events).expect("a right trace").save(&path).expect("the trace is written");
    path
}

/// One thread takes sixteen buffers, gives every other one back to another thread, and takes larger
/// ones that fit into what is free, but into none of the gaps. Over and over.
fn gaps() -> Vec<(u32, u32, Option<u64>)> {
    let mut events = Vec::new();
    for _ in 0..10 {
        events.extend((0..16).map(|id| (0, id, Some(1000))));
        events.extend((0..16).step_by(2).map(|id| (1, id, None)));
        events.extend([0, 2, 4, 6].map(|id| (0, id, Some(2000))));
        events.extend((0..16).filter(|id| id % 2 == 1 || *id < 8).map(|id| (1, id, None)));
    }
    events
}

fn entries(advice: &Value) -> &[Value] {
    advice["entries"].as_array().expect("entries")
}

fn pick(advice: &Value) -> &Value {
    &entries(advice)[advice["choice"]["pick"].as_u64().expect("a number") as usize]
}

#[test]
fn settings_without_room_are_reported_and_not_taken() {
    let folder = folder("gaps");
    let trace = write(&folder, "gaps", 1, &gaps());
    let page = folder.join("advice.html");
    let output = advise(&trace, &["--json", "--page", page.to_str().expect("UTF-8")]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let advice = json(&output);
    assert_eq!(advice["schema"], 5);
    assert_eq!(advice["needs"]["own_bytes"], 16_000);
    assert_eq!(advice["room"]["own_bytes"], 32_000);
    let entries = entries(&advice);
    let small = entries.iter().find(|entry| entry["strategy"] == "slot").expect("the smallest pool");
    assert_eq!(small["counted"]["refused"]["exhausted"], 0, "{small}");
    let pick = pick(&advice);
    assert_eq!((&pick["refused"], &pick["refused_twice"]), (&0.0.into(), &0.0.into()), "{pick}");
    for strategy in ["slot", "ring", "bump", "shard", "heap", "vec"] {
        assert!(entries.iter().any(|entry| entry["strategy"] == strategy), "{strategy}");
    }
    for entry in entries {
        assert!(entry["times"]["median"].as_f64().expect("timed") > 0.0, "{entry}");
        assert!(entry["processor"].as_f64().expect("timed") > 0.0, "{entry}");
    }
    memory_follows_the_gaps(&advice);
    let front = advice["front"].as_array().expect("a trade-off");
    assert!(!front.is_empty() && front.len() < entries.len(), "{front:?}");
    let page = fs::read_to_string(page).expect("the page is written");
    assert!(page.contains("→ "), "the choice is marked in the picture");
    // One that is chosen for its memory may be beaten in both by one that is as fast within the noise.
    let rows = 1 + usize::from(front.contains(&advice["choice"]["pick"]));
    assert_eq!(
        (page.matches("<svg").count(), page.matches("<tr class=\"chosen\"").count()),
        (2, rows),
        "{page}"
    );
    assert_eq!(
        page.matches("<tr>").count() + rows,
        front.len() + entries.len() + 2,
        "all rows and two headers"
    );
}

/// Memory over time is that of the traffic `gaps`: it rises and falls with the buffers that are out,
/// and the figures of a candidate are those of its series.
fn memory_follows_the_gaps(advice: &Value) {
    let memory = &advice["memory"];
    let numbers = |value: &Value| -> Vec<f64> {
        let values = value.as_array().unwrap_or_else(|| panic!("no series: {memory}"));
        values.iter().map(|value| value.as_f64().expect("a number")).collect()
    };
    let most = |values: &[f64]| values.iter().copied().reduce(f64::max);
    let (seconds, out) = (numbers(&memory["seconds"]), numbers(&memory["out"]));
    assert_eq!(
        (seconds[0], out[0], out.last(), most(&out)),
        (0.0, 0.0, Some(&0.0), Some(16_000.0)),
        "{memory}"
    );
    // There are 40 events of a nanosecond in each of the ten turns.
    assert!(seconds.is_sorted() && (seconds.last().expect("looks") * 1e9 - 399.0).abs() < 0.1, "{memory}");
    assert_eq!(memory["now"]["settings"], "vec");
    let now = numbers(&memory["now"]["bytes"]);
    assert_eq!((now.len(), seconds.len()), (out.len(), out.len()));
    let vec = entries(advice).iter().find(|entry| entry["strategy"] == "vec").expect("no pool");
    let printed = [&vec["counted"]["resident_bytes"], &vec["counted"]["reserved_bytes"]];
    assert_eq!(most(&now), printed.iter().find_map(|bytes| bytes.as_f64()), "{memory}");
}

/// A program that asks a few times a second: nothing is saved by a pool.
#[test]
fn no_pool_where_buffers_do_not_matter() {
    let folder = folder("rare");
    let events: Vec<_> = (0..200).flat_map(|_| [(0, 0, Some(900)), (0, 0, None)]).collect();
    // A request each tenth of a second.
    let trace = write(&folder, "rare", 50_000_000, &events);
    let output = advise(&trace, &["--json"]);
    let advice = json(&output);
    assert_eq!(advice["choice"]["no_pool"], true, "{}", pick(&advice));
    assert!(pick(&advice)["strategy"] == "vec" || pick(&advice)["strategy"] == "heap");
    let words = printed(&advise(&trace, &[]));
    assert!(
        words.contains("No pool would help") && words.contains("saves less than 0.1 % of a processor"),
        "{words}"
    );
    assert_eq!(printed(&advise(&trace, &["--emit", "text"])).trim(), "heap");
}

/// A program over an allocator that gives each buffer's pages back at once, so that they have to be
/// faulted in again. It asks a thousand times a second, and that costs percents of a processor.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_pool_where_buffers_matter() {
    let folder = folder("busy");
    let mut events = Vec::new();
    for _ in 0..20 {
        events.extend((0..4).map(|id| (0, id, Some(128 << 10))));
        events.extend((0..4).map(|id| (0, id, None)));
    }
    let trace = write(&folder, "busy", 500_000, &events);
    let advise = |more: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
        program.env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536");
        program.arg("advise").arg(&trace).arg("--test").args(more).output().expect("the program starts")
    };
    let advice = json(&advise(&["--json"]));
    assert_eq!(advice["choice"]["no_pool"], false, "{}", pick(&advice));
    let output = advise(&["--memory-limit", "64K"]);
    assert_eq!(code(&output), 1);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("No candidate takes at most 64 KiB. The least is"), "{errors}");
}

/// A server whose trace never had two buffers out is not told to take a ring for one.
#[test]
fn settings_are_for_the_traffic_to_come() {
    let folder = folder("alone");
    let events: Vec<_> = (0..300).flat_map(|_| [(0, 0, Some(4000)), (0, 0, None)]).collect();
    let trace = write(&folder, "alone", 1, &events);
    let advice = json(&advise(&trace, &["--json"]));
    assert_eq!((&advice["needs"]["live"], &advice["room"]["own_live"]), (&1.into(), &8.into()));
    for entry in entries(&advice) {
        let settings = entry["settings"].as_str().expect("a text");
        assert!(!settings.ends_with("slots=1") && !settings.contains("buffers=1,"), "{settings}");
    }
    assert_eq!(pick(&advice)["refused_twice"], 0.0);
    let words = printed(&self::advise(&trace, &[]));
    assert!(words.contains("Beyond that, ") || words.contains("Beyond the recorded traffic, "), "{words}");
}

#[test]
fn check_says_whether_settings_fit() {
    let folder = folder("check");
    let trace = write(&folder, "gaps", 1, &gaps());
    let check = |settings: &str, more: &[&str]| {
        bufadvise("check", &[&trace, settings.as_ref()], &[&["--test"][..], more].concat())
    };
    let small = check("slot:slots=4,capacity=8KiB", &[]);
    assert_eq!(code(&small), 1, "{}", printed(&small));
    assert!(
        printed(&small).contains("Requests: does not fit. There was no room for "),
        "{}",
        printed(&small)
    );
    let large = check("slot:slots=64,capacity=256KiB", &[]);
    assert_eq!(code(&large), 0, "{}", printed(&large));
    assert!(
        printed(&large).contains("`slot:capacity=256KiB,slots=64` fits this trace."),
        "{}",
        printed(&large)
    );
    let limited = check("slot:slots=64,capacity=256KiB", &["--memory-limit", "4K"]);
    assert_eq!(code(&limited), 1, "{}", printed(&limited));
    // Settings that were emitted are read again.
    let emitted = printed(&advise(&trace, &["--emit", "text"]));
    let checked = check(emitted.trim(), &[]);
    assert_eq!(code(&checked), 0, "{emitted}\n{}", printed(&checked));
    let rust = printed(&advise(&trace, &["--emit", "rust"]));
    assert!(rust.contains("pub const SETTINGS: &str = ") && rust.contains("pub fn "), "{rust}");
    for wrong in ["slab", "slot:slot=1", "no such file"] {
        assert_eq!(code(&check(wrong, &[])), 2, "{wrong}");
    }
}

#[test]
fn show_says_what_is_in_a_trace() {
    let folder = folder("show");
    let trace = write(&folder, "gaps", 1000, &gaps());
    let shown = bufadvise("show", &[&trace], &[]);
    assert_eq!(code(&shown), 0);
    let text = printed(&shown);
    for part in ["200 (", "16 buffers, 15.6 KiB", "2 different", "size up to", "bytes out over time"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = json(&bufadvise("show", &[&trace], &["--json"]));
    assert_eq!((&shown["acquires"], &shown["max_live_bytes"]), (&200.into(), &16_000.into()));
    assert_eq!(shown["sizes"][0]["acquires"], 160);
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = folder("broken");
    let trace = write(&folder, "gaps", 1, &gaps());
    let mut file = fs::read(&trace).expect("it was written");
    file.truncate(file.len() - 1);
    let empty = Trace::new(Meta::new("empty"), Vec::new()).expect("a right trace").encode();
    for (name, bytes, what) in [
        ("cut", file, "trace ends too early"),
        ("text", b"hello".into(), "not a buffer trace"),
        ("empty", empty, "no thread asks"),
    ] {
        let trace = folder.join(name);
        fs::write(&trace, bytes).expect("the file is written");
        let page = folder.join("advice.html");
        let output = advise(&trace, &["--page", page.to_str().expect("UTF-8")]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == 2 && errors.contains(what), "{name}: {errors}");
        assert!(!page.exists(), "{name}");
    }
    let missing = advise(&folder.join("missing"), &[]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read"));
    assert_eq!(code(&bufadvise("advise", &[], &["--no-such-option"])), 2);
    let help = bufadvise("check", &[], &["--help"]);
    assert!(code(&help) == 0 && printed(&help).contains("Exit codes:"));
}
