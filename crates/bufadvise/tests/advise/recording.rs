//! Programs that are run with the library in front of them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{bufadvise, code, folder, printed};

/// The library, which cargo builds in front of this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("this binary");
    let mut folders = test.ancestors().skip(1).take(2).map(|folder| folder.join("libbufpreload.so"));
    folders.find(|path| path.exists()).expect("the library is built")
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").file_name());
    let mut files: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    files.sort();
    files
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for something that another process does.
fn await_that(what: &str, is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends a process as `kill` does, which is a program of its own only on some machines.
fn terminate(process: &str) -> bool {
    Command::new("sh").args(["-c", "kill $0", process]).status().expect("a shell").success()
}

fn record(arguments: &[&str], file: &Path, program: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(arguments).arg("--library").arg(library()).arg("--output").arg(file);
    command.args(["--settings", "exact"]).arg("--").args(program);
    at_root(&mut command).output().expect("the program starts")
}

/// Sorts the lines of a text.
const SORT: [&str; 2] = ["sort", "LICENSE-APACHE"];

/// In the root of the workspace, where that text is.
fn at_root(command: &mut Command) -> &mut Command {
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

#[test]
fn a_program_is_recorded() {
    let file = folder("record").join("a b.heap");
    let output = record(&["record"], &file, &SORT);
    let (text, errors) = (printed(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(code(&output), 0, "{errors}");
    let lines: Vec<_> = text.lines().collect();
    let sorted = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SORT[1]));
    assert_eq!(lines.len(), sorted.expect("a text").lines().count() + 1, "its output is there");
    assert!(
        lines.last().is_some_and(|line| line.contains("a b.heap: ") && line.contains(" objects")),
        "{text}"
    );
    assert_eq!(files(file.parent().expect("a folder")), ["a b.heap"]);
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
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command.arg("record").arg("--output").arg(folder.join("sort.heap")).args(["--settings", "exact", "--"]);
    at_root(command.args(SORT));
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

#[test]
fn only_recordings_are_replaced() {
    let folder = folder("kept");
    let file = folder.join("kept.heap");
    fs::write(&file, "#!/bin/sh").expect("a file");
    let output = record(&["record"], &file, &SORT);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));
    assert_eq!(fs::read(&file).expect("it is there"), b"#!/bin/sh");

    fs::remove_file(&file).expect("it is deleted");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    let output = record(&["record"], &file, &SORT);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));
    assert!(file.exists());

    fs::remove_file(&file).expect("it is deleted");
    assert_eq!(code(&record(&["record"], &file, &SORT)), 0);
    let first = fs::read(&file).expect("a recording");
    assert_eq!(code(&record(&["record"], &file, &["/nowhere/at/all"])), 2);
    // A file that is no library: nothing is recorded.
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(["record", "--library", SORT[1], "--output"]).arg(&file).args(["--", "true"]);
    let output = at_root(&mut command).output().expect("it starts");
    assert!(code(&output) == 2 && errors(&output).contains("nothing was recorded"), "{}", errors(&output));
    assert!(fs::read(&file).expect("it is there") == first, "the older one is as it was");
    assert_eq!(code(&record(&["record"], &file, &SORT)), 0);
    assert!(fs::read(&file).expect("a recording") != first);
}

#[test]
fn a_name_has_one_recording_at_a_time() {
    let folder = folder("one");
    let file = folder.join("one.heap");
    let sleep = ["sh", "-c", "sort /dev/null; read line"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.arg("record").arg("--library").arg(library()).arg("--output").arg(&file);
    command.args(["--settings", "exact", "--"]).args(sleep);
    let first = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    await_that("the first records", || !files(&folder).is_empty());
    let second = record(&["record"], &file, &SORT);
    let output = first.wait_with_output().expect("it ends");
    assert!(code(&second) == 2 && errors(&second).contains("another recording"), "{}", errors(&second));
    assert_eq!(code(&output), 0);
    let program = buftrace::Profile::load(&file).expect("a recording").info().program.clone();
    assert!(!program.contains("sort"), "{program}");
}

#[test]
fn times_may_be_long() {
    let file = folder("long").join("long.heap");
    let output = record(&["record", "--for", "18446744073709551615"], &file, &SORT);
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

/// The answer takes many seconds, and is not waited for.
#[test]
fn signals_end_an_answer_and_leave_no_files() {
    let folder = folder("signals");
    let (file, temporary) = (folder.join("signals.heap"), folder.join("tmp"));
    fs::create_dir(&temporary).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(["run", "--seconds", "60"]).arg("--library").arg(library()).arg("--output").arg(&file);
    command.args(["--settings", "exact", "--"]).args(SORT);
    command.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = at_root(&mut command).spawn().expect("it starts");
    await_that("the recording ends", || file.exists());
    thread::sleep(Duration::from_millis(1500));
    let told = Instant::now();
    assert!(child.try_wait().expect("it is there").is_none(), "it is not so fast");
    assert!(terminate(&child.id().to_string()));
    while child.try_wait().expect("it is there").is_none() && told.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(20));
    }
    let ended = child.try_wait().expect("it is there");
    let _ = child.kill();
    let left = files(&temporary);
    assert!(ended.is_some_and(|status| status.code().is_none()), "{ended:?}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_library_may_have_any_path() {
    let folder = folder("paths");
    let (file, temporary) = (folder.join("paths.heap"), folder.join("tmp"));
    let copy = folder.join("a b:c.so");
    fs::create_dir(&temporary).expect("a folder");
    fs::copy(library(), &copy).expect("a copy");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.arg("record").arg("--library").arg(copy).arg("--output").arg(&file).env("TMPDIR", &temporary);
    let output = at_root(command.args(["--settings", "exact", "--"]).args(SORT)).output().expect("it starts");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(files(&temporary).is_empty());
}

#[test]
fn pipes_and_disks_that_take_nothing_are_no_panic() {
    let file = folder("closed").join("closed.heap");
    assert_eq!(code(&record(&["record"], &file, &SORT)), 0);
    let show = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
        command.arg("show").arg(&file).stderr(Stdio::piped());
        command
    };
    let mut child = show().stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), errors(&output)), (0, String::new()));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let output = show().stdout(full.try_clone().expect("the same")).output().expect("it ends");
    assert!(code(&output) == 2 && errors(&output).starts_with("error: cannot print"), "{}", errors(&output));
    let output = show().stdout(full.try_clone().expect("the same")).stderr(full).output().expect("it ends");
    assert_eq!(code(&output), 2);
}

#[test]
fn names_of_a_recording_do_not_control_the_terminal() {
    let folder = folder("escapes");
    let (file, program) = (folder.join("escapes.heap"), folder.join("sort\x1b[31m"));
    fs::copy("/usr/bin/sort", &program).expect("a copy");
    let program = [program.to_str().expect("UTF-8"), "/dev/null"];
    let output = record(&["record"], &file, &program);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let shown = printed(&bufadvise("show", &[&file], &[]));
    assert!(shown.contains("sort\u{fffd}[31m") && !shown.contains('\x1b'), "{shown:?}");
}
