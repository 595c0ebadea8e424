//! What a process meets: a fork, signals, files that it closes, its environment.

use core::hint::black_box;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::env;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use buftrace::{Ending, Profile, hooks, start_heap_recording};

use crate::{Temporary, command, run as run_scenario};

fn buffer(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(bytes)))
}

fn sizes(profile: &Profile) -> Vec<u64> {
    profile.objects().iter().map(|object| object.bytes).filter(|bytes| bytes % 1000 == 77).collect()
}

pub(crate) fn fork(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    let of_parent = buffer(10_077);
    // SAFETY: the child calls what is allowed in it: other threads of this process only wait.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(of_parent);
        drop(buffer(20_077));
        buftrace::stop_heap_recording();
        // SAFETY: has no conditions.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is writable.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    drop(buffer(30_077));
    drop(of_parent);
    buftrace::stop_heap_recording();
}

#[test]
fn a_forked_child_does_not_record() {
    let folder = env::temp_dir().join(format!("buftrace-{}-fork", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join("fork.heap");
    run_scenario("fork", &file);
    let profile = Profile::load(&file).expect("a recording");
    let files = fs::read_dir(&folder).expect("the folder").count();
    fs::remove_dir_all(&folder).expect("the folder is the test's own");
    assert_eq!((sizes(&profile), profile.ending()), (vec![10_077, 30_077], Ending::Stopped));
    assert!(
        profile.objects().iter().filter(|object| object.bytes > 9999).all(|object| object.released.is_some())
    );
    assert_eq!(files, 1, "the parent's");
}

/// Until it ends, a recording is beside its name, and what has the name stays.
#[test]
fn only_recordings_are_replaced() {
    let file = Temporary::new("replaced");
    let part = file.part();
    let start = || command("environment", &file.0).env("BUFTRACE", &file.0).output().unwrap();
    let said = |word: &str| {
        let output = start();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.contains(word), "{output:?}");
    };
    for text in ["a letter", ""] {
        fs::write(&file.0, text).unwrap();
        said("is no recording");
        assert_eq!(fs::read_to_string(&file.0).unwrap(), text);
        fs::remove_file(&file.0).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", &file.0).unwrap();
    said("is no recording");
    fs::remove_file(&file.0).unwrap();

    start();
    let first = file.profile();
    fs::write(&part.0, "of another").unwrap();
    said("another process writes it");
    assert_eq!((fs::read(&part.0).unwrap(), file.profile() == first), (b"of another".to_vec(), true));
    fs::remove_file(&part.0).unwrap();
    start();
    assert!(!part.0.exists() && file.profile().info().pid != first.info().pid);
}

pub(crate) fn late(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    drop(buffer(10_077));
    fs::write(file, "a letter").expect("a file");
    buftrace::stop_heap_recording();
}

/// What comes to the name while it is recorded stays.
#[test]
fn what_comes_later_is_not_replaced() {
    let file = Temporary::new("late");
    let output = run_scenario("late", &file.0);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("keeps `.part`") && !text.contains("recording stops"), "{text}");
    assert_eq!(fs::read(&file.0).unwrap(), b"a letter");
    assert_eq!(file.part().profile().ending(), Ending::Stopped);
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// As a handler that allocates, which the allocator itself might not survive.
extern "C" fn handler(_: libc::c_int) {
    let memory = ptr::without_provenance(0x10_0000);
    hooks::allocated(memory, 4096, false);
    hooks::freed(memory);
    // ORDER: Relaxed: a count.
    CALLS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn signals(file: &Path) {
    start_heap_recording(file, "exact,limit=64MiB").expect("it starts");
    // SAFETY: the handler calls nothing that a handler may not call.
    unsafe { libc::signal(libc::SIGALRM, handler as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    let often = libc::timeval { tv_sec: 0, tv_usec: 100 };
    let timer = libc::itimerval { it_interval: often, it_value: often };
    // SAFETY: the timer is readable, and nothing is read back.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
    let start = Instant::now();
    // On a busy machine few signals come in that time. One that waits for the lock takes half a second.
    // ORDER: Relaxed: as above.
    let is_over = |time: Duration| {
        time > Duration::from_millis(500) && CALLS.load(Ordering::Relaxed) > 50
            || time > Duration::from_secs(20)
    };
    while !is_over(start.elapsed()) {
        drop(buffer(5_000));
    }
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_IGN) };
    buftrace::stop_heap_recording();
    // ORDER: Relaxed: as above.
    println!("\nCALLS {}", CALLS.load(Ordering::Relaxed));
}

#[test]
fn handlers_do_not_block() {
    let file = Temporary::new("signals");
    let output = run_scenario("signals", &file.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let calls = text.lines().find_map(|line| line.strip_prefix("CALLS ")).expect("calls");
    assert!(calls.parse::<u64>().unwrap() > 50, "{calls} signals");
    let profile = file.profile();
    assert_eq!((profile.ending(), profile.lost()), (Ending::Stopped, 0));
}

/// Forks that take a second, or half a minute where each of them waits for a lock.
const LEAST_FORKS: u64 = 200;
/// Forks in the handler whose child ended well.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// Whether this process is such a child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Records an object without memory behind it, which needs no allocator: a fork may not interrupt
/// that.
fn note_object(number: usize) {
    let memory = ptr::without_provenance(0x10_0000 + (number << 4));
    hooks::allocated(memory, 4096, false);
    hooks::freed(memory);
}

/// A child goes on with what was interrupted, for a moment. The parent waits for that.
extern "C" fn forking_handler(_: libc::c_int) {
    // SAFETY: the program is amid the recorder, which waits for nobody, or amid nothing.
    let child = unsafe { libc::fork() };
    // ORDER: Relaxed, here and below: the thread that stores it looks at it.
    if child == 0 {
        IS_CHILD.store(true, Ordering::Relaxed);
        return;
    }
    let mut status = 0;
    // SAFETY: `status` is writable.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    // ORDER: as above.
    FORKS.fetch_add(u64::from(status == 0), Ordering::Relaxed);
}

/// Ends a child that was forked by the handler, after some more objects.
fn leave_if_child() {
    // ORDER: Relaxed: this thread stored it.
    if IS_CHILD.load(Ordering::Relaxed) {
        (0..1000).for_each(note_object);
        // SAFETY: has no conditions.
        unsafe { libc::_exit(0) };
    }
}

pub(crate) fn handler_forks(file: &Path) {
    /// Whether the alarms end.
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    /// The number of objects so far.
    static NOTED: AtomicU64 = AtomicU64::new(0);

    start_heap_recording(file, "exact,depth=0,limit=256MiB").expect("it starts");
    // SAFETY: what the handler calls is allowed while this program notes objects.
    unsafe {
        libc::signal(libc::SIGALRM, forking_handler as extern "C" fn(libc::c_int) as libc::sighandler_t)
    };
    // SAFETY: has no conditions.
    let this = unsafe { libc::pthread_self() };
    let start = Instant::now();
    // A timer's signal might come to the thread that runs the tests, and before there was time for
    // anything else.
    let alarms = std::thread::spawn(move || {
        let mut last = 0;
        // ORDER: Relaxed, here and below: numbers that say when, and nothing else.
        while !IS_OVER.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(300));
            let now = NOTED.load(Ordering::Relaxed);
            if now > last + 3 {
                last = now;
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(this, libc::SIGALRM) };
            }
        }
    });
    // ORDER: as above.
    while FORKS.load(Ordering::Relaxed) < LEAST_FORKS && start.elapsed() < Duration::from_secs(25) {
        let number = NOTED.fetch_add(1, Ordering::Relaxed);
        note_object(number as usize % 64);
        leave_if_child();
    }
    // ORDER: as above.
    IS_OVER.store(true, Ordering::Relaxed);
    // SAFETY: as above. No handler forks while the other thread ends.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_IGN) };
    leave_if_child();
    alarms.join().expect("it only waits and sends");
    buftrace::stop_heap_recording();
    // ORDER: as above.
    let [forks, noted] = [&FORKS, &NOTED].map(|number| number.load(Ordering::Relaxed));
    println!("\nFORKS {forks} NOTED {noted}");
}

/// T25: neither parent nor child waits for a lock that the interrupted code has, the parent's
/// recording has every event, and no child writes to it.
#[test]
fn t25_forks_of_a_handler() {
    let folder = env::temp_dir().join(format!("buftrace-{}-handler-forks", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join("recording");
    let output = run_scenario("handler_forks", &file);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = text.lines().find_map(|line| line.strip_prefix("FORKS ")?.split_once(" NOTED "));
    let (forks, noted) = numbers.expect("a line with both");
    let is_swift = forks.parse::<u64>().is_ok_and(|forks| forks >= LEAST_FORKS);
    assert!(is_swift, "{forks} forks amid {noted} objects: somebody waited for a lock");
    let profile = Temporary(file).profile();
    assert_eq!((profile.ending(), profile.lost()), (Ending::Stopped, 0));
    let of_parent = profile.objects().iter().filter(|object| object.bytes == 4096);
    assert_eq!(of_parent.count().to_string(), noted);
    fs::remove_dir_all(folder).expect("the folder is the test's own");
}

/// Closes all files, as services do, and has its own where the recording's was.
pub(crate) fn closed(file: &Path) {
    start_heap_recording(file, "exact").expect("it starts");
    drop(buffer(10_077));
    let mut own = fs::File::create(file.with_extension("own")).unwrap();
    for number in (3..2000).filter(|number| *number != own.as_raw_fd()) {
        // SAFETY: no file of this program that is used later is among them.
        unsafe { libc::close(number) };
    }
    for number in 600..610 {
        // SAFETY: has no conditions on memory.
        unsafe { libc::dup2(own.as_raw_fd(), number) };
    }
    for _ in 0..20_000 {
        drop(buffer(20_077));
    }
    buftrace::stop_heap_recording();
    own.write_all(b"mine").unwrap();
}

#[test]
fn closed_files_are_found_again() {
    let file = Temporary::new("closed");
    run_scenario("closed", &file.0);
    let own = Temporary(file.0.with_extension("own"));
    assert_eq!(fs::read(&own.0).unwrap(), b"mine");
    let profile = file.profile();
    assert_eq!((sizes(&profile).len(), profile.ending()), (20_001, Ending::Stopped));
}

pub(crate) fn environment() {
    drop(buffer(70_077));
    // What this program starts is not recorded.
    assert!(env::var_os("BUFTRACE").is_none() && env::var_os("BUFTRACE_OPTIONS").is_none());
}

#[test]
fn the_environment_starts_a_recording() {
    let file = Temporary::new("environment");
    let mut command = command("environment", &file.0);
    command.env("BUFTRACE", &file.0).env("BUFTRACE_OPTIONS", "exact,min=60000");
    assert!(command.stdout(std::process::Stdio::null()).status().unwrap().success());
    let profile = file.profile();
    assert_eq!((sizes(&profile), profile.ending()), (vec![70_077], Ending::Stopped));
    assert_eq!(profile.info().min_bytes, 60_000);
    assert_eq!(profile.info().program, env::current_exe().unwrap().to_str().unwrap());
}

#[test]
fn wrong_settings_are_said() {
    let file = Temporary::new("wrong");
    for (options, path, parts) in [
        ("often", &file.0, ["not understood", "`exact`"]),
        ("exact", &PathBuf::from("/no/such/folder/x"), ["/no/such/folder/x", "no such folder"]),
    ] {
        let mut command = command("environment", &file.0);
        let output = command.env("BUFTRACE", path).env("BUFTRACE_OPTIONS", options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{output:?}");
        let lines = said.lines().filter(|line| line.starts_with("buftrace: "));
        assert_eq!(lines.count(), 1, "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!file.0.exists());
    }
}
