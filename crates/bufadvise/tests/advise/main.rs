//! `bufadvise` from a file to its answer.
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
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

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
    bufadvise("advise", &[trace], more)
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

/// Takes and releases `count` buffers of one size, one after the other.
fn one_by_one(count: usize, bytes: u64) -> Vec<(u32, u32, Option<u64>)> {
    (0..count).flat_map(|_| [(0, 0, Some(bytes)), (0, 0, None)]).collect()
}

/// As `zstd` of 0.25 s; as one that requests one window in seconds, which takes little of them; and as
/// one that has a few huge ones in a second.
#[test]
fn what_is_short_is_too_short_to_say() {
    let folder = folder("short");
    let short = write(&folder, "short", 1000, &gaps());
    let words = printed(&advise(&short, &[]));
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!((lines.len(), lines[3]), (4, "Recorded: 400 events."), "{words}");
    assert_eq!(lines[0], "Too short to say.");
    assert!(lines[1].contains("with 200 requests") && lines[2].contains(" of 1 s"), "{words}");
    let seldom = write(&folder, "seldom", 5_000_000_000, &one_by_one(1, 84 << 20));
    let words = printed(&advise(&seldom, &[]));
    let asked = "No pool would help.\nThe recording is 5.00 s long, with 1 request. All its requests";
    assert!(words.starts_with(asked) && words.contains("of its own"), "{words}");
    let huge = write(&folder, "huge", 130_000_000, &one_by_one(4, 500 << 20));
    let words = printed(&advise(&huge, &["--table"]));
    assert!(words.starts_with("Too short to say.\nThe recording is 910 ms long, with"), "{words}");
    let huge = write(&folder, "huge", 150_000_000, &one_by_one(4, 500 << 20));
    let words = printed(&advise(&huge, &[]));
    assert!(words.contains("\nThe recording is 1.05 s long, with 4 requests. `"), "{words}");
    assert!(words.contains(" in their replay.\nTo recommend a pool takes 100 requests and 30"), "{words}");
    assert!(words.contains(" Record it for longer. "), "{words}");
    let answer = json(&advise(&huge, &["--json"]));
    assert_eq!((&answer["schema"], &answer["verdict"]), (&8.into(), &"too_short".into()));
}

/// A program that requests a few buffers a second: all of it takes less than a user notices.
#[test]
fn no_pool_where_buffers_do_not_matter() {
    let folder = folder("rare");
    let trace = write(&folder, "rare", 50_000_000, &one_by_one(200, 900));
    let output = advise(&trace, &["--table"]);
    let words = printed(&output);
    assert_eq!(code(&output), 0, "{words}");
    assert!(words.starts_with("No pool would help.\nAll its requests together take < 0.1 % of"), "{words}");
    assert!(words.contains("\nRecorded: 400 events.\n"), "{words}");
    assert!(
        words.contains("\nSure: the replay without a pool had 200 requests.") && words.contains("vec"),
        "{words}"
    );
    assert!(!words.contains("pub fn"), "{words}");
}

/// Of what was in use at once, a replay has a third: no pool is named that has room for that third.
#[test]
fn settings_are_for_all_that_was_in_use() {
    let folder = folder("too-large");
    let held = |name: &str, count: u32| {
        let events: Vec<_> = (0..count).map(|id| (0, id, Some(1 << 20))).collect();
        write(&folder, name, 1_000_000, &events)
    };
    let output = advise(&held("large", 1500), &[]);
    let words = printed(&output);
    let large = "Too large to try: 1500 buffers of 1500.0 MiB in all were in use at once, and a replay has \
                 512 buffers of 512.0 MiB in all.\nRecorded: 1500 events.\n";
    assert_eq!((code(&output), &words[..]), (1, large));

    let answer = json(&advise(&held("half", 1010), &["--json", "--seconds", "8"]));
    assert_eq!(answer["requests"]["replayed"], 512, "{answer}");
    let bytes = answer["now"]["bytes"].as_u64().expect("memory");
    assert!((1000..1100).contains(&(bytes >> 20)), "the memory is that of all of them: {answer}");
    let tried = answer["tried"].as_array().expect("candidates");
    assert!(tried.iter().any(|one| one["settings"].as_str().is_some_and(|text| text.contains("slots=2020"))));
}

/// Refuses huge pages to this program and to those that it starts. Where everybody has them, there
/// are 512 times fewer page faults.
fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: no pointers are passed.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Advises over an allocator that gives each buffer's pages back at once, so that they have to be
/// faulted in again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn gives_back(trace: &Path, more: &[&str]) -> Output {
    refuse_huge_pages();
    let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    program.env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536");
    program.arg("advise").arg(trace).args(more).output().expect("the program starts")
}

/// A tenth of its second is page faults.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_pool_where_buffers_matter() {
    let folder = folder("busy");
    let trace = write(&folder, "busy", 800_000, &one_by_one(700, 1 << 20));
    let advise = |more: &[&str]| gives_back(&trace, more);
    let answer = json(&advise(&["--json"]));
    assert_eq!(answer["verdict"], "pool", "{answer}");
    assert!(answer["code"].as_str().is_some_and(|code| code.contains("pub fn pool() ->")), "{answer}");
    let best = &answer["tried"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{best}"));
    // The pool touches its pages once, and that is counted too.
    let (now, pool) = (number(&answer["now"]["faults"]), number(&best["replayed"]["faults"]));
    assert!(now > 100_000.0 && (256.0..now / 2.0).contains(&pool), "{now}, {pool}");
    assert!(number(&best["compared"]["low"]) >= 0.03, "{best}");
    let output = advise(&["--memory-limit", "64K"]);
    assert_eq!(code(&output), 1, "no pool is within the limit");
    assert!(
        printed(&output).starts_with("No answer: no pool is within the limit of memory"),
        "{}",
        printed(&output)
    );
}

/// Three buffers are in use at once at the end, and one before: that end is replayed.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_late_peak_is_replayed() {
    let mut events = one_by_one(700, 1 << 20);
    events.extend((0..3).map(|id| (0, id, Some(1 << 20))));
    let answer = json(&gives_back(&write(&folder("late"), "late", 800_000, &events), &["--json"]));
    assert_eq!(
        (&answer["verdict"], &answer["requests"]["replayed"]),
        (&"pool".into(), &257.into()),
        "{answer}"
    );
}

/// As an in-memory database: all that it requests is kept. There is an answer, in time.
#[test]
fn an_answer_is_held_to_its_seconds() {
    let folder = folder("kept");
    let events: Vec<_> = (0..100_000).map(|id| (0, id, Some(4096))).collect();
    let trace = write(&folder, "kept", 10_000, &events);
    for seconds in ["1", "4"] {
        let started = Instant::now();
        let output = advise(&trace, &["--seconds", seconds, "--json"]);
        // Others have the processors, too.
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        let answer = json(&output);
        assert_ne!(answer["verdict"], "pool", "{answer}");
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
    for (name, bytes, what) in
        [("cut", file, "trace ends too early"), ("text", b"hello".into(), "not a buffer trace")]
    {
        let trace = folder.join(name);
        fs::write(&trace, bytes).expect("the file is written");
        let output = advise(&trace, &[]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == 2 && errors.contains(what), "{name}: {errors}");
    }
    let empty = write(&folder, "empty", 1, &[]);
    assert!(printed(&advise(&empty, &[])).starts_with("Nothing to say.\n"));
    let missing = advise(&folder.join("missing"), &[]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read"));
    assert_eq!(code(&bufadvise("advise", &[], &["--no-such-option"])), 2);
    let help = bufadvise("show", &[], &["--help"]);
    assert!(code(&help) == 0 && printed(&help).contains("Exit codes:"));
}
