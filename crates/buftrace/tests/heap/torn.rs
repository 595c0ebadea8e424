//! Recordings that do not come to their end: a program that is killed, a disk that is full, a
//! limit.

use core::hint::black_box;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use buftrace::{Ending, Profile, start_heap_recording};

use crate::{Temporary, command, run as run_scenario};

fn buffers(count: usize) {
    for n in 0..count {
        drop(black_box(Vec::<u8>::with_capacity(black_box(4096 + n % 100))));
    }
}

pub(crate) fn long(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    buffers(8_000);
    buftrace::stop_heap_recording();
}

pub(crate) fn kill(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    buffers(20_000);
    println!("\nREADY");
    loop {
        buffers(1000);
    }
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let whole = Temporary::new("kill");
    let file = whole.part();
    let mut child = command("kill", &whole.0).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "READY"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!whole.0.exists(), "it has no end");
    let profile = file.profile();
    assert!(matches!(profile.ending(), Ending::Open | Ending::Torn(_)), "{:?}", profile.ending());
    assert!(profile.objects().len() > 15_000, "{} objects", profile.objects().len());
    assert!(profile.modules().iter().any(|module| module.path.contains("heap-")));
}

/// Each block is complete by itself: a shorter file has the first part of the recording.
#[test]
fn shorter_files_are_read_up_to_their_last_whole_block() {
    let temporary = Temporary::new("long");
    run_scenario("long", &temporary.0);
    let file = fs::read(&temporary.0).unwrap();
    let whole = Profile::decode(&file).unwrap();
    assert_eq!(whole.ending(), Ending::Stopped);
    let mut counts = Vec::new();
    for length in (0..file.len()).step_by(file.len() / 60) {
        let Ok(part) = Profile::decode(&file[..length]) else {
            assert!(counts.is_empty(), "once it can be read, more can be");
            continue;
        };
        assert!(matches!(part.ending(), Ending::Open | Ending::Torn(_)), "{:?}", part.ending());
        let count = part.objects().len();
        let same = part.objects().iter().zip(whole.objects());
        // The last ones may have been released later.
        assert!(same.take(count.saturating_sub(100)).all(|(part, whole)| part == whole));
        counts.push(count);
    }
    assert!(counts.is_sorted() && counts.len() > 20, "{counts:?}");
    // One bit that is wrong ends it there, too.
    let mut damaged = file.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    let part = Profile::decode(&damaged).unwrap();
    assert!(matches!(part.ending(), Ending::Torn(error) if error.offset <= middle), "{:?}", part.ending());
    assert!(part.objects().len() < whole.objects().len());
}

pub(crate) fn full(file: &Path) {
    let error = start_heap_recording("/dev/full", "").unwrap_err();
    assert!(error.to_string().contains("is not replaced"), "{error}");
    start_heap_recording(file, "exact").expect("it starts");
    let limit = libc::rlimit { rlim_cur: 100_000, rlim_max: 100_000 };
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    buffers(50_000);
    buftrace::stop_heap_recording();
    println!("\nDONE");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let file = Temporary::new("full");
    let output = run_scenario("full", &file.0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nDONE"), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("recording stops")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("no longer file"), "{said}");
    let profile = file.profile();
    assert_eq!(profile.ending(), Ending::Open, "whole blocks alone");
    assert!(profile.objects().len() > 1000);
}

pub(crate) fn limit(file: &Path) {
    start_heap_recording(file, "exact,limit=50000").expect("it starts");
    buffers(50_000);
    buftrace::stop_heap_recording();
    println!("\nDONE");
}

#[test]
fn a_file_does_not_exceed_its_limit() {
    let file = Temporary::new("limit");
    let output = run_scenario("limit", &file.0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("reached its limit"), "{output:?}");
    let length = fs::metadata(&file.0).unwrap().len();
    assert!((20_000..=50_000).contains(&length), "{length} bytes");
    assert_eq!(file.profile().ending(), Ending::Limit);
}
