//! Places: the stacks of a recording lead to the functions that made the requests, by addresses
//! alone.

use core::hint::black_box;
use std::path::Path;
use std::process::Command;

use buftrace::{Profile, start_heap_recording};

use crate::{Temporary, run as run_scenario};

const BYTES: usize = 123_457;

#[inline(never)]
fn first_place_of_this_test() -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(BYTES)))
}

#[inline(never)]
fn second_place_of_this_test() -> Vec<u8> {
    let buf = first_place_of_this_test();
    black_box(buf)
}

pub(crate) fn run(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    drop(black_box(second_place_of_this_test()));
    buftrace::stop_heap_recording();
    // Where this run has the functions, in addresses of the process.
    println!(
        "\nPLACES {} {}",
        first_place_of_this_test as fn() -> Vec<u8> as usize,
        second_place_of_this_test as fn() -> Vec<u8> as usize
    );
}

fn stack(profile: &Profile) -> &[u64] {
    let object =
        profile.objects().iter().find(|object| object.bytes == BYTES as u64).expect("it is recorded");
    profile.stack(object.stack)
}

#[test]
fn stacks_lead_to_functions() {
    let file = Temporary::new("places");
    let output = run_scenario("places", &file.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let places = text.lines().find_map(|line| line.strip_prefix("PLACES ")).expect("places");
    let places: Vec<u64> = places.split(' ').map(|place| place.parse().unwrap()).collect();
    let profile = file.profile();
    let stack = stack(&profile);
    // A return address is a little behind the start of its function.
    for place in places {
        assert!(stack.iter().any(|address| (place..place + 400).contains(address)), "{place:#x}: {stack:x?}");
    }
    let module = profile.module_of(0, stack[0]).expect("the code of this test");
    let this = std::env::current_exe().unwrap();
    assert_eq!(Path::new(&module.path), this);
    assert!(module.build_id.len() >= 16 && module.build_id.bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert!(profile.modules().iter().any(|module| module.path.contains("libc")));
}

/// Later, and by a program that was not there: from the file alone.
#[test]
fn places_have_names() {
    let file = Temporary::new("names");
    run_scenario("places", &file.0);
    let profile = file.profile();
    let mut names = String::new();
    for address in stack(&profile) {
        let Some(module) = profile.module_of(0, *address) else { continue };
        let address = format!("{:#x}", module.address_in_file(address - 1));
        let output =
            Command::new("addr2line").args(["-f", "-C", "-i", "-e", &module.path, &address]).output();
        let Ok(output) = output else {
            eprintln!("skipped: no addr2line here");
            return;
        };
        names += &String::from_utf8_lossy(&output.stdout);
    }
    let at = |name: &str| names.find(name).unwrap_or_else(|| panic!("{name} is not in {names}"));
    assert!(at("first_place_of_this_test") < at("second_place_of_this_test"), "{names}");
    // Optimised test programs have no debug information, and so no lines.
    assert!(names.contains("places.rs:") || !cfg!(debug_assertions), "{names}");
}
