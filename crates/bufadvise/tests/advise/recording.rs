//! Programs that are run with the library in front of them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{code, folder, printed};

/// The library, which cargo builds in front of this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("this binary");
    let mut folders = test.ancestors().skip(1).take(2).map(|folder| folder.join("libbufpreload.so"));
    folders.find(|path| path.exists()).expect("the library is built")
}

fn record(arguments: &[&str], file: &Path, program: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(arguments).arg("--library").arg(library()).arg("--output").arg(file);
    command.args(["--settings", "exact"]).arg("--").args(program);
    command.output().expect("the program starts")
}

/// A shell, and `sort`, which it starts: both have a recording.
const SORT: [&str; 3] =
    ["sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done | sort -n | tail -n 1"];

#[test]
fn a_program_is_recorded() {
    let file = folder("record").join("a b.heap");
    let output = record(&["record"], &file, &SORT);
    let (text, errors) = (printed(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(code(&output), 0, "{errors}");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "1999", "its output is there");
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.contains(" objects")), "{text}");
    assert!(errors.contains("several processes"), "{errors}");
}

#[test]
fn a_program_is_advised() {
    let file = folder("run").join("sort.heap");
    let output = record(&["run", "--test", "--json"], &file, &SORT);
    let text = printed(&output);
    let advice = text.split_once('{').map(|(_, rest)| format!("{{{rest}")).expect("JSON");
    let advice: serde_json::Value = serde_json::from_str(&advice).expect("JSON behind the rest");
    assert!(advice["entries"].as_array().is_some_and(|entries| entries.len() > 2), "{text}");
}

#[test]
fn a_server_is_ended_after_a_time() {
    let file = folder("for").join("server.heap");
    let started = Instant::now();
    let output = record(&["record", "--for", "1"], &file, &["sh", "-c", "sort /dev/null; exec sleep 600"]);
    assert_eq!(code(&output), 0);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(String::from_utf8_lossy(&output.stderr).contains("signal: 15"), "it says how the program ended");
}

#[test]
fn programs_that_are_not_there() {
    let file = folder("none").join("none.heap");
    let output = record(&["record"], &file, &["/nowhere/at/all"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run /nowhere/at/all"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    let output = command.arg("record").stdin(Stdio::null()).output().expect("the program starts");
    assert_eq!(code(&output), 2, "a program is needed");
}

/// `bufadvise` in a folder of its own, with no library beside it and none that was built before.
fn without_library(name: &str) -> (PathBuf, Command) {
    let folder = folder(name);
    let program = folder.join("bufadvise");
    fs::copy(env!("CARGO_BIN_EXE_bufadvise"), &program).expect("the program is copied");
    let mut command = Command::new(&program);
    command.env("XDG_CACHE_HOME", folder.join("cache")).env_remove("BUFADVISE_LIBRARY");
    command.arg("record").arg("--output").arg(folder.join("sort.heap")).args(["--settings", "exact", "--"]);
    command.args(SORT);
    (folder, command)
}

/// Takes a release build of the recorder, without a network: it is for `--long`.
#[test]
fn a_library_is_built_on_demand() {
    let (folder, mut command) = without_library("built");
    command.env("BUFADVISE_BUFTRACE", Path::new(env!("CARGO_MANIFEST_DIR")).join("../buftrace"));
    command.env("CARGO_NET_OFFLINE", "true");
    let mut record = || {
        let output = command.output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), 0, "{errors}");
        assert!(printed(&output).contains(" objects"), "{errors}");
        errors
    };
    assert!(record().contains("built once"), "it was not there");
    let kept = folder.join("cache/bufadvise").join(env!("CARGO_PKG_VERSION"));
    let files: Vec<_> =
        fs::read_dir(&kept).expect("its folder").map(|file| file.expect("a file").file_name()).collect();
    assert!(files.iter().any(|name| name == "libbufpreload.so"), "{files:?}");
    assert!(!kept.join("target").exists(), "what the build left is deleted: {files:?}");
    assert!(!record().contains("built once"), "it is there now");
}

#[test]
fn a_library_that_cannot_be_built() {
    let (folder, mut command) = without_library("unbuilt");
    let output = command.env("CARGO", "false").output().expect("the program starts");
    assert_eq!(code(&output), 2);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("cargo could not build the library that records. Build it elsewhere"),
        "{errors}"
    );
    assert!(!folder.join("sort.heap").exists(), "the program was not run");
}
