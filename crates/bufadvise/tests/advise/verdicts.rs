//! Verdicts by place: a pool where one place needs it, none where another does not.

use core::time::Duration;
use std::process::Command;
use std::thread;

use buftrace::hooks;
use serde_json::Value;

use super::heap::{functions, memory, recorded};
use super::{code, folder, json};

#[inline(never)]
fn requests_often(number: usize) {
    hooks::allocated(memory(number), 72 << 10, true);
    hooks::freed(memory(number));
    core::hint::black_box(());
}

#[inline(never)]
fn requests_rarely(number: usize) {
    hooks::allocated(memory(number), 512 << 10, false);
    hooks::freed(memory(number));
    core::hint::black_box(());
}

#[inline(never)]
fn grows(number: usize) {
    hooks::allocated(memory(number), 16 << 10, false);
    for step in 0..3 {
        let growth = hooks::Reallocation::begin(memory(number + step));
        growth.end(memory(number + step + 1), 16 << (10 + step), 16 << (11 + step));
    }
    hooks::freed(memory(number + 3));
    core::hint::black_box(());
}

/// The allocator gives each buffer's pages back at once, so that they have to be faulted in again.
fn advise(arguments: &[&str]) -> std::process::Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    program.env("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536");
    program.args(["advise", "--test"]).args(arguments).output().expect("the program starts")
}

#[test]
#[cfg(target_env = "gnu")]
fn each_place_has_its_own_answer() {
    let path = recorded(folder("verdicts").join("app.heap"), || {
        // For 0.1 s and more.
        for _ in 0..10 {
            for number in 1..=10 {
                requests_often(number);
            }
            thread::sleep(Duration::from_millis(10));
        }
        for number in 1..=2 {
            requests_rarely(100 * number);
        }
        for number in 1..=10 {
            grows(1000 * number);
        }
    });
    let path = path.to_str().expect("UTF-8");
    // What a pool saves is measured, and a busy machine takes it: it has to be seen once.
    let mut advice = Value::Null;
    for _ in 0..5 {
        let output = advise(&["--json", path]);
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        advice = json(&output);
        let places = advice["call_sites"].as_array().expect("places");
        if places.iter().any(|place| place["no_pool"] == false) {
            break;
        }
    }
    let places = advice["call_sites"].as_array().expect("places");
    assert_eq!(places.len(), 3, "{places:?}");
    let find = |name: &str| -> &Value {
        let is_it = |place: &&Value| functions(place).iter().any(|function| function.ends_with(name));
        places.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {places:?}"))
    };
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {value}"));

    // Hundreds of requests a second for fresh pages are percents of a processor.
    let often = find("::requests_often");
    assert_eq!(
        (&often["count"], &often["zeroed"], &often["no_pool"]),
        (&100.0.into(), &100.0.into(), &false.into())
    );
    assert_eq!((&often["now"]["settings"], &often["allocations_per_request"]), (&"heap".into(), &1.0.into()));
    assert!(number(&often["now"]["processor"]) > 2.0 * number(&often["choice"]["processor"]), "{often}");
    assert!(number(&often["saved"]) > 0.001 && number(&often["share_of_bytes"]) > 0.5, "{often}");
    assert!(number(&often["requests_per_second"]) <= 1000.0, "{often}");
    assert_eq!(often["requests_per_second_error"], 0.0, "each was recorded");

    // A buffer that is requested twice does not matter, however large it is. (`--test` measures too
    // little for a verdict on what takes milliseconds, so the time is not compared.)
    let rarely = find("::requests_rarely");
    assert_eq!((&rarely["count"], &rarely["now"]["settings"]), (&2.0.into(), &"vec".into()));

    // Each grows three times.
    let grown = find("::grows");
    assert_eq!((&grown["allocations_per_request"], &grown["grown"]), (&4.0.into(), &10.0.into()));
    // (`--test` measures too little to compare the two times: a busy machine takes the difference.)
    for times in [&grown["now"]["times"], &grown["largest_at_once"]["times"]] {
        assert!(number(&times["median"]) > 0.0, "{grown}");
    }
}

/// A place whose requests cost nothing that anybody would notice.
#[test]
fn no_pool_for_a_place_that_does_not_matter() {
    let path = recorded(folder("idle-place").join("app.heap"), || {
        for number in 1..=4 {
            requests_rarely_small(number);
            thread::sleep(Duration::from_millis(50));
        }
    });
    let path = path.to_str().expect("UTF-8");
    let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    let output = program.args(["advise", "--test", "--json", path]).output().expect("the program starts");
    let place = &json(&output)["call_sites"][0];
    assert_eq!((&place["count"], &place["no_pool"]), (&4.0.into(), &true.into()), "{place}");
    assert!(place["saved"].as_f64().is_some_and(|saved| saved.abs() < 0.001), "{place}");
}

#[inline(never)]
fn requests_rarely_small(number: usize) {
    hooks::allocated(memory(number), 700, false);
    hooks::freed(memory(number));
    core::hint::black_box(());
}
