//! Recordings of a heap: places with their names, what holds most, and advice.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use buftrace::{hooks, start_heap_recording, stop_heap_recording};
use serde_json::Value;

use super::{advise, bufadvise, code, folder, json, printed};

/// Addresses are numbers to the recorder: as if an allocator had served these.
pub(crate) fn memory(number: usize) -> *const u8 {
    core::ptr::without_provenance(number << 16)
}

/// Records each request of `program`.
pub(crate) fn recorded(path: PathBuf, program: impl FnOnce()) -> PathBuf {
    recorded_by("exact", path, program)
}

/// Records what these settings say. A process has one recording at a time.
pub(crate) fn recorded_by(settings: &str, path: PathBuf, program: impl FnOnce()) -> PathBuf {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    super::refuse_huge_pages();
    start_heap_recording(&path, settings).expect("a recording");
    program();
    stop_heap_recording();
    path
}

pub(crate) fn shown(path: &Path, more: &[&str]) -> Value {
    let output = bufadvise("show", &[path], &[&["--json"], more].concat());
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

pub(crate) fn places(shown: &Value) -> &[Value] {
    shown["heap"]["call_sites"].as_array().expect("call sites")
}

/// The functions of a place, innermost first; empty where there is no name.
pub(crate) fn functions(place: &Value) -> Vec<&str> {
    let frames = place["frames"].as_array().expect("frames");
    frames.iter().map(|frame| frame["function"].as_str().unwrap_or_default()).collect()
}

/// Whether this program has debug information. Optimised test programs have none.
const HAS_LINES: bool = cfg!(debug_assertions);

/// The recording of a program that uses no pool is read as well, and says where the memory was
/// requested.
#[test]
fn recordings_of_a_heap_are_read() {
    let folder = folder("heap");
    let path = recorded(folder.join("app.heap"), || {
        // Pages that the process did not have: no allocator keeps so many.
        let mut pages = Vec::with_capacity(64 << 20);
        pages.push(1_u8);
        drop(core::hint::black_box(pages));
        for round in 0..200 {
            for number in 1..=8 {
                hooks::allocated(memory(number), 1000 * number, false);
            }
            for number in 1..=8 {
                // The last buffer of each round grows.
                if number == 8 {
                    let growth = hooks::Reallocation::begin(memory(number));
                    growth.end(memory(number + 1), 8000, 9000 + round);
                    hooks::freed(memory(number + 1));
                } else {
                    hooks::freed(memory(number));
                }
            }
        }
    });

    let shown = shown(&path, &[]);
    assert_eq!((&shown["schema"], &shown["heap"]["requests"]), (&4.into(), &1600.0.into()));
    assert_eq!((shown["heap"]["exact"].as_bool(), shown["heap"]["lost"].as_u64()), (Some(true), Some(0)));
    assert!(shown["heap"]["faults"].as_u64().is_some_and(|faults| faults > 0), "{shown}");
    let sum = |of: &str| places(&shown).iter().filter_map(|place| place[of].as_f64()).sum::<f64>();
    assert_eq!((sum("count"), sum("grown")), (1600.0, 200.0));
    let module = places(&shown)[0]["frames"][0]["module"].as_str().expect("a module");
    assert_eq!(Path::new(module), std::env::current_exe().expect("this program"));
    let shown = printed(&bufadvise("show", &[&path], &[]));
    assert!(shown.contains("each request: 1600 objects, 0 lost; complete"), "{shown}");
    assert!(shown.contains("recordings_of_a_heap_are_read"), "{shown}");

    let answer = json(&advise(&path, &["--json"]));
    assert_eq!(answer["requests"]["count"].as_f64(), Some(1600.0), "{answer}");
    assert_eq!(answer["call_sites"].as_array().map(Vec::len), Some(0), "{answer}");
}

#[inline(always)]
fn takes_for_its_caller(number: usize) {
    hooks::allocated(memory(number), 4096, false);
}

#[inline(never)]
fn reads_a_body(number: usize) {
    takes_for_its_caller(number);
    core::hint::black_box(());
}

#[inline(never)]
fn first_caller(number: usize) {
    reads_a_body(number);
    core::hint::black_box(());
}

#[inline(never)]
fn second_caller(number: usize) {
    reads_a_body(number);
    core::hint::black_box(());
}

#[test]
fn places_have_the_names_of_functions() {
    let path = recorded(folder("names").join("app.heap"), || {
        first_caller(1);
        second_caller(2);
        second_caller(3);
    });
    let found = shown(&path, &[]);
    let by_caller = places(&found);
    let find = |name: &str| -> &Value {
        let is_it = |place: &&Value| functions(place).iter().any(|function| function.ends_with(name));
        by_caller.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {by_caller:?}"))
    };
    // A call of the same function in two lines is two places, where lines are known.
    assert_eq!(find("::first_caller")["count"], 1.0);
    assert_eq!(by_caller.len(), if HAS_LINES { 3 } else { 2 }, "{by_caller:?}");
    for place in by_caller {
        let names = functions(place);
        let reads = names.iter().position(|name| name.ends_with("::reads_a_body")).expect("it is in all");
        // The recorder's own frames are left out.
        assert!(names.iter().all(|name| !name.contains("buftrace")), "{names:?}");
        assert!(names[reads + 1].ends_with("_caller"), "{names:?}");
        if HAS_LINES {
            assert!(reads == 1 && names[0].ends_with("takes_for_its_caller"), "{names:?}");
            let inlined = |frame: usize| place["frames"][frame]["inlined"] == true;
            assert!(inlined(0) && !inlined(1), "{place}");
            let frame = &place["frames"][1];
            assert!(frame["file"].as_str().is_some_and(|file| file.ends_with("heap.rs")), "{frame}");
            assert!(frame["line"].as_u64().is_some_and(|line| line > 80), "{frame}");
        }
    }
    // What looks alike is one place: the caller is the third frame, or the second where no inlined
    // ones are known.
    let frames = ["--frames", if HAS_LINES { "2" } else { "1" }];
    let one = shown(&path, &frames);
    assert_eq!((places(&one).len(), &places(&one)[0]["count"]), (1, &3.0.into()), "{one}");
    let text = printed(&bufadvise("show", &[&path], &frames));
    assert!(text.contains("reads_a_body") && !text.contains("first_caller"), "{text}");
    assert!(!HAS_LINES || text.contains("(advise/heap.rs:"), "{text}");
}

#[inline(never)]
fn leaks(number: usize) {
    hooks::allocated(memory(number), 4096, false);
    core::hint::black_box(());
}

#[inline(never)]
fn gives_back(number: usize) {
    hooks::allocated(memory(number), 1 << 20, false);
    hooks::freed(memory(number));
    core::hint::black_box(());
}

/// What requests little and holds it for ever comes before what requests much for a moment.
#[test]
fn a_leak_holds_most() {
    let folder = folder("leak");
    let path = recorded(folder.join("app.heap"), || {
        for number in 1..=100 {
            leaks(number);
        }
        thread::sleep(Duration::from_millis(300));
        for number in 101..=200 {
            gives_back(number);
        }
    });
    let found = shown(&path, &[]);
    // The most bytes are not what holds most.
    assert!(functions(&places(&found)[0]).iter().any(|name| name.ends_with("::gives_back")), "{found}");
    let text = printed(&bufadvise("show", &[&path], &[]));
    let held = text.split("that hold most").nth(1).expect("a table");
    let (leak, other) = (held.find("::leaks"), held.find("::gives_back"));
    assert!(leak.is_some() && (other.is_none() || leak < other), "{held}");

    let lines = printed(&bufadvise("show", &[&path], &["--folded"]));
    let value = |name: &str| -> u64 {
        let of = lines.lines().filter(|line| line.contains(name));
        of.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    // 400 KiB for 300 ms and more.
    assert!((100 * 4096 * 3 / 10 * 1000..).contains(&(value("::leaks") + 1)), "{lines}");
    assert!(value("::leaks") > 5 * value("::gives_back"), "{lines}");
    assert!(lines.lines().all(|line| line.starts_with("advise-")), "the program comes first: {lines}");
}

/// A pool's trace has no places.
#[test]
fn a_trace_without_places_has_no_profile() {
    let folder = folder("no-places");
    let trace = super::write(&folder, "gaps", 1000, &super::gaps());
    let output = bufadvise("show", &[&trace], &["--folded"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(code(&output) == 2 && errors.contains("has no call sites"), "{errors}");
    assert!(output.stdout.is_empty());
}

/// Where most bytes are in large blocks, the answer for a program in Rust names `bufalloc`.
#[test]
fn large_blocks_have_an_allocator() {
    let folder = folder("large");
    for (bytes, is_named) in [(128 << 10, true), (8 << 10, false)] {
        let path = recorded(folder.join(format!("{bytes}.heap")), || {
            let started = std::time::Instant::now();
            while started.elapsed() < Duration::from_millis(1100) {
                for number in 1..=2000 {
                    hooks::allocated(memory(number), bytes, true);
                    hooks::freed(memory(number));
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        let answer = printed(&advise(&path, &[]));
        assert_eq!(answer.contains("`bufalloc`"), is_named, "{answer}");
        // Small ones are zeroed without a pool too.
        let requests = &json(&advise(&path, &["--json", "--seconds", "1"]))["requests"];
        let zeroed =
            requests["count"].as_f64().map(|count| if is_named { count * bytes as f64 } else { 0.0 });
        assert_eq!(requests["zeroed_bytes"].as_f64(), zeroed, "{requests}");
    }
}
