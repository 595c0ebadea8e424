//! Programs that are run with the library in front of them.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{bufadvise, code, folder, printed};

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

/// Sends a signal as `kill` does, which is a program of its own only on some machines.
fn kill(signal: &str, process: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "kill -$0 $1", signal, process]).status().expect("a shell").success()
}

fn record(arguments: &[&str], file: &Path, program: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(arguments).arg("--output").arg(file);
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
    let sorted = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SORT[1]));
    assert_eq!(text.lines().count(), sorted.expect("a text").lines().count(), "the output is the program's");
    assert!(errors.contains("a b.heap: ") && errors.contains(" lost; complete"), "{errors}");
    assert_eq!(files(file.parent().expect("a folder")), ["a b.heap"]);
}

/// Without a file of its own, `run` works where nothing can be written, and leaves nothing.
#[test]
fn a_program_is_advised() {
    let folder = folder("run");
    let (work, temporary) = (folder.join("work"), folder.join("tmp"));
    for folder in [&work, &temporary] {
        fs::create_dir(folder).expect("a folder");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.current_dir(&work).env("TMPDIR", &temporary);
    command.args(["run", "--json", "--", "sh", "-c", "sort /dev/null; exit 3"]);
    let output = command.output().expect("it starts");
    assert_eq!((code(&output), printed(&output)), (0, String::new()));
    let answer: serde_json::Value = serde_json::from_str(&errors(&output)).expect("JSON alone");
    let recorded = answer["recorded"].as_str().expect("a text");
    assert!(recorded.contains(" lost; complete") && recorded.ends_with("exit status: 3."), "{recorded}");
    assert_eq!(answer["verdict"], "too_short", "{answer}");
    command.stderr(fs::OpenOptions::new().write(true).open("/dev/full").expect("a device"));
    assert_eq!(code(&command.output().expect("it starts")), 2, "the answer is lost");
    assert_eq!((files(&work).len(), files(&temporary).len()), (0, 0));
}

#[test]
fn a_server_is_ended_after_a_time() {
    let file = folder("for").join("server.heap");
    let started = Instant::now();
    let output =
        record(&["record", "--for", "3"], &file, &["sh", "-c", "while :; do x=$(printf %01000d 1); done"]);
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

/// They are told in one line, and are not started.
#[test]
fn programs_that_cannot_be_recorded_are_told() {
    let folder = folder("told");
    let source = folder.join("program.c");
    fs::write(&source, "int puts(const char *); int main(void) { puts(\"started\"); return 0; }")
        .expect("a text");
    let own = folder.join("own.c");
    let malloc = "#include <stddef.h>\nvoid *malloc(size_t n) { return NULL; }\nint main(void) { return malloc(1) != NULL; }";
    fs::write(&own, malloc).expect("a text");
    for (name, source, options, why) in [
        ("static", &source, &["-static"][..], "is linked statically"),
        ("own", &own, &["-rdynamic", "-fno-builtin"], "has a `malloc` of its own"),
        ("asan", &source, &["-fsanitize=address"], "is built with a sanitizer"),
    ] {
        let program = folder.join(name);
        let mut command = Command::new("cc");
        command.args(options).arg("-o").arg(&program).arg(source).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: no cc here, or no library for {name}");
            continue;
        }
        let output = record(&["record"], &folder.join("told.heap"), &[program.to_str().expect("UTF-8")]);
        let errors = errors(&output);
        assert_eq!((code(&output), printed(&output)), (2, String::new()), "{name}: {errors}");
        assert!(errors.contains(why) && errors.lines().count() == 1, "{name}: {errors}");
    }
}

/// As many scripts are each other's interpreters as the system allows for, and no pipe is waited for.
#[test]
fn scripts_and_pipes_are_no_end() {
    // An interpreter's path ends at the first space.
    let folder = Path::new("/tmp").join(format!("advise-scripts-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let script = |name: &str, interpreter: &Path| {
        let path = folder.join(name);
        // By another process: a child of another test could have the file open for writing, which cannot be run.
        let write = ["-c", r#"printf '#!%s\n' "$1" > "$0""#].map(Path::new);
        let status = Command::new("sh").args(write).args([&path, interpreter]).status();
        assert!(status.expect("there is a shell").success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    };
    let said = |path: &Path| {
        let output = record(&["record"], &folder.join("said.heap"), &[path.to_str().expect("UTF-8")]);
        let said = errors(&output);
        assert!(code(&output) == 2 || said.contains("; complete"), "{said}");
        said
    };
    let (mut path, mut refused) = (script("0", Path::new("/bin/true")), 0);
    for number in 1..8 {
        let is_refused = Command::new(&path).status().is_err();
        assert_eq!(said(&path).contains("interpreter is a script"), is_refused, "{number}: {}", said(&path));
        refused += usize::from(is_refused);
        path = script(&number.to_string(), &path);
    }
    assert!((1..7).contains(&refused), "{refused}");
    assert!(said(&script("own", &folder.join("own"))).contains("interpreter is a script"));
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for path in [&pipe, &script("piped", &pipe)] {
        assert!(said(path).contains("cannot run"), "{}", said(path));
    }
    fs::remove_dir_all(&folder).expect("it is there");
}

/// A program that brings an allocator along is recorded, which is said.
#[test]
fn an_allocator_in_a_library_is_named() {
    let folder = folder("allocator");
    let compile = |source: &str, arguments: &[&str]| {
        fs::write(folder.join("text.c"), source).expect("a text");
        let mut command = Command::new("cc");
        command
            .current_dir(&folder)
            .arg("text.c")
            .args(arguments)
            .status()
            .is_ok_and(|status| status.success())
    };
    if !compile("int zero(void) { return 0; }", &["-shared", "-fPIC", "-o", "libjemalloc.so.2"])
        || !compile(
            "int zero(void); void *malloc(unsigned long); int main(void) { return malloc(70077) ? zero() : 1; }",
            &["-fno-builtin", "-o", "program", "./libjemalloc.so.2", "-Wl,-rpath,$ORIGIN"],
        )
    {
        eprintln!("skipped: no cc here");
        return;
    }
    let program = folder.join("program");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.current_dir(&folder).args(["record", "--settings", "exact"]);
    let output = command.arg(program).output().expect("it starts");
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(errors(&output).contains("complete. Its allocator is libjemalloc"), "{}", errors(&output));
}

#[test]
fn a_recording_of_nothing_is_said() {
    let file = folder("nothing").join("nothing.heap");
    let record = |command: &str, settings: &str| {
        let output = [file.as_os_str()];
        let mut program = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
        program.args([command, "--settings", settings, "--output"]).args(output).args(SORT);
        at_root(&mut program).output().expect("it starts")
    };
    let output = record("record", "exact,min=1GiB");
    let said = errors(&output);
    assert!(
        code(&output) == 2 && said.contains("0 objects, ") && said.contains("no request was recorded"),
        "{said}"
    );
    assert!(said.contains("less than 1024.0 MiB are recorded with --settings exact,min=1."), "{said}");
    assert!(said.contains("nothing.heap is not written.\n") && !file.exists(), "{said}");
    let run = record("run", "exact,min=1GiB");
    assert!(code(&run) == 0 && errors(&run).starts_with("Nothing to say.\n"), "{}", errors(&run));
    assert!(
        errors(&run).contains("exact,min=1.") && errors(&run).contains("not written"),
        "{}",
        errors(&run)
    );
    let limited = errors(&record("run", "exact,limit=300"));
    assert!(limited.contains("reached its limit, which `limit=1GiB` sets"), "{limited}");
    // What is there already stays.
    assert_eq!(code(&record("record", "exact")), 0);
    let first = fs::read(&file).expect("a recording");
    assert_eq!(code(&record("record", "exact,min=1GiB")), 2);
    assert!(fs::read(&file).expect("it is there") == first);
    assert_eq!(files(file.parent().expect("a folder")), ["nothing.heap"]);
}

/// Before the program starts.
#[test]
fn wrong_options_are_refused() {
    let started = folder("wrong").join("started");
    for wrong in [
        ["--settings", "bogus"],
        ["--settings", "min=5KB"],
        ["--frames", "0"],
        ["--memory-limit", "16 megabytes"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
        let output = command.arg("run").args(wrong).args(["--", "touch"]).arg(&started).output();
        let output = output.expect("it starts");
        assert!(code(&output) == 2 && errors(&output).contains("invalid value"), "{}", errors(&output));
    }
    assert!(!started.exists());
}

/// A signal to the program or to this one, at any time: no file stays that has nothing.
#[test]
fn signals_at_the_start_leave_nothing() {
    let folder = folder("at-once");
    for number in 0..300 {
        let file = folder.join(format!("{number}.heap"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
        command.args(["record", "--output"]).arg(&file).args(["--", "sh", "-c", "kill $$; sleep 60"]);
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        thread::sleep(Duration::from_micros(number * 10_000 / 300));
        if number % 2 == 0 {
            assert!(kill("TERM", &child.id().to_string()));
        }
        child.wait().expect("it is there");
    }
    let left = files(&folder);
    assert!(left.iter().all(|name| name.ends_with(".heap")), "{left:?}");
    assert!(left.iter().all(|name| buftrace::Profile::load(folder.join(name)).is_ok()), "{left:?}");
}

/// The worker ends by `_exit`, and is named; the file of its parent is whole.
#[test]
fn workers_are_not_recorded_and_named() {
    let file = folder("workers").join("workers.heap");
    let source = "import multiprocessing as m\ndef w(n): return len(bytearray(n))\n\
                  if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(p.map(w, [70077] * 9))\n";
    let script = file.with_extension("py");
    fs::write(&script, source).expect("a script");
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Some(found) = found.ok().filter(|output| output.status.success()) else { return };
    let python = printed(&found);
    let output = record(&["record"], &file, &[python.trim(), script.to_str().expect("UTF-8")]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(printed(&output).contains("70077"), "{}", printed(&output));
    let said = errors(&output);
    assert!(said.contains("; complete; its child processes are not recorded ("), "{said}");
    let profile = buftrace::Profile::load(&file).expect("a recording");
    assert!(profile.objects().iter().all(|object| object.bytes != 70_077), "what a worker requests");
    assert_eq!(files(file.parent().expect("a folder")), ["workers.heap", "workers.py"]);
}

/// It is recorded up to the `exec`, without the last tenth of a second, which is all of it here.
#[test]
fn exec_ends_a_recording() {
    let file = folder("exec").join("exec.heap");
    let output = record(&["record"], &file, &["bash", "-c", "x=$(printf %070077d 1); exec true"]);
    if errors(&output).contains("cannot run") {
        return;
    }
    assert_eq!(code(&output), 2, "{}", errors(&output));
    for part in ["as another program", "no request was recorded", "Requests to an allocator"] {
        assert!(errors(&output).contains(part), "{}", errors(&output));
    }
    assert_eq!(files(file.parent().expect("a folder")), [""; 0]);
}

#[test]
fn only_recordings_are_replaced() {
    let folder = folder("kept");
    let file = folder.join("kept.heap");
    fs::write(&file, "#!/bin/sh").expect("a file");
    let output = record(&["record"], &file, &SORT);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));
    assert_eq!(fs::read(&file).expect("it is there"), b"#!/bin/sh");

    fs::write(&file, "").expect("a file");
    let output = record(&["record"], &file, &SORT);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));

    fs::remove_file(&file).expect("it is deleted");
    let writes = format!("sort /dev/null; echo letter > '{}'", file.display());
    let output = record(&["record"], &file, &["sh", "-c", &writes]);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));
    assert_eq!(fs::read(&file).expect("it is there"), b"letter\n");
    let part = file.with_extension("heap.part").join("recording");
    assert!(errors(&output).contains(&format!("the recording is {}", part.display())), "{}", errors(&output));
    buftrace::Profile::load(&part).expect("a recording");
    fs::remove_dir_all(file.with_extension("heap.part")).expect("it is deleted");

    fs::remove_file(&file).expect("it is deleted");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    let output = record(&["record"], &file, &SORT);
    assert!(code(&output) == 2 && errors(&output).contains("is no recording"), "{}", errors(&output));
    assert!(file.exists());

    fs::remove_file(&file).expect("it is deleted");
    assert_eq!(code(&record(&["record"], &file, &SORT)), 0);
    let first = fs::read(&file).expect("a recording");
    assert_eq!(code(&record(&["record"], &file, &["/nowhere/at/all"])), 2);
    assert!(fs::read(&file).expect("it is there") == first, "the older one is as it was");
    assert_eq!(code(&record(&["record"], &file, &SORT)), 0);
    assert!(fs::read(&file).expect("a recording") != first);
}

#[test]
fn a_name_has_one_recording_at_a_time() {
    let folder = folder("one");
    let file = folder.join("one.heap");
    // The shell itself has to ask for memory, for the variable.
    let sleep = ["sh", "-c", "long=$(printf %1000d 0); sort /dev/null; read line"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.arg("record").arg("--output").arg(&file);
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

/// A second program for `run`, which is told to end while it answers: nothing is left, and no child
/// goes on.
#[test]
fn signals_end_an_answer_and_leave_no_files() {
    let folder = folder("signals");
    let (trace, temporary) = (folder.join("trace"), folder.join("tmp"));
    fs::create_dir(&temporary).expect("a folder");
    let events: Vec<_> = (0..1500).map(|id| (0, id, Some(600 << 10))).collect();
    let trace = crate::write(&folder, trace.to_str().expect("UTF-8"), 1_000_000, &events);
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(["advise", "--seconds", "600"]).arg(&trace).env("TMPDIR", &temporary);
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let own = child.id().to_string();
    let children = || {
        let found = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    await_that("it replays", || !children().is_empty());
    assert!(kill("TERM", &own));
    let replaying = children();
    let status = child.wait().expect("it is there");
    assert_eq!(status.code(), None, "{status}");
    let is_gone = |process: &String| {
        let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        state.rsplit(')').next().is_none_or(|state| state.is_empty() || state.starts_with(" Z"))
    };
    await_that("its children end too", || replaying.iter().all(is_gone));
    assert!(files(&temporary).is_empty());
}

/// `timeout` and others end it while the program runs: the program ends too, and no answer comes.
#[test]
fn signals_end_a_recording() {
    for signal in ["TERM", "INT", "QUIT"] {
        ends_a_recording(signal);
    }
}

fn ends_a_recording(signal: &str) {
    let folder = folder(&format!("told-by-{signal}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.args(["run", "--", "sh", "-c", "echo $$; sort /dev/null; exec sleep 600"]);
    command.env("TMPDIR", &folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut program = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    lines.read_line(&mut program).expect("it prints");
    assert!(kill(signal, &child.id().to_string()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), None, "{}", errors(&output));
    assert!(!errors(&output).contains("to say"), "{}", errors(&output));
    assert!(!Path::new("/proc").join(program.trim()).exists(), "{program}");
    assert!(files(&folder).is_empty());
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
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "ulimit -f 0; exec \"$0\" show \"$1\" > \"$1.text\"",
        env!("CARGO_BIN_EXE_bufadvise"),
    ]);
    let output = limited.arg(&file).output().expect("it ends");
    assert!(code(&output) == 2 && errors(&output).starts_with("error: cannot print"), "{}", errors(&output));
    let output = bufadvise("show", &[Path::new("/dev/zero")], &[]);
    assert!(code(&output) == 2 && errors(&output).contains("not a buffer trace"), "{}", errors(&output));
}

#[test]
fn names_of_a_recording_do_not_control_the_terminal() {
    let folder = folder("escapes");
    let (file, program) = (folder.join("escapes.heap"), folder.join("sort\x1b[31m\nNo"));
    // By another process, as the scripts above.
    assert!(Command::new("cp").arg("/usr/bin/sort").arg(&program).status().expect("cp").success());
    let program = [program.to_str().expect("UTF-8"), "/dev/null"];
    let output = record(&["record"], &file, &program);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let shown = printed(&bufadvise("show", &[&file], &[]));
    assert!(shown.contains("sort\u{fffd}[31m\u{fffd}No") && !shown.contains(['\x1b']), "{shown:?}");
    assert!(!shown.contains("\nNo"), "{shown:?}");
}
