//! Tests in a process of their own, and what the kernel says about it.
//!
//! Limits, resident memory and descriptors belong to a process, and a hang must be a failure rather
//! than a test run that never ends. So trials about any of these run alone.

use std::env;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Set in the child, to the name of the test that it is for.
const ALONE: &str = "BUFTEST_ALONE";
/// The program that runs test binaries of another processor: this system cannot start them by
/// themselves.
const RUNNER: &str = "BUFTEST_RUNNER";

/// Runs `body` in a process of its own: this test binary, started again for this one test.
///
/// `module` is the `module_path!()` of the test, `test` its function's name.
///
/// # Panics
///
/// When the child fails, dies of a signal, takes longer than `limit`, or did not run the test.
#[track_caller]
pub fn alone(module: &str, test: &str, limit: Duration, body: impl FnOnce()) {
    let limit = as_long_here(limit);
    // The harness names tests without the crate.
    let name = match module.split_once("::") {
        Some((_, path)) => format!("{path}::{test}"),
        None => test.to_owned(),
    };
    if env::var(ALONE).is_ok_and(|value| value == name) {
        return body();
    }
    let binary = env::current_exe().expect("the test binary has a path");
    let words = env::var_os(RUNNER).into_iter().chain([binary.into_os_string()]).collect::<Vec<_>>();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args([&name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, &name)
        // Panics on purpose are many.
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test binary starts");
    let stdout = collect(child.stdout.take().expect("stdout is piped"));
    let stderr = collect(child.stderr.take().expect("stderr is piped"));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if started.elapsed() > limit {
            child.kill().expect("a child can be killed");
            child.wait().expect("a killed child ends");
            panic!(
                "{name} did not end within {limit:?}:\n{}",
                stderr.join().expect("reading does not panic")
            );
        }
        thread::sleep(Duration::from_millis(2));
    };
    let stdout = stdout.join().expect("reading does not panic");
    let stderr = stderr.join().expect("reading does not panic");
    assert!(status.success(), "{name} failed in its own process ({status}):\n{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{name} was not run in its own process:\n{stdout}");
}

/// Returns how long an emulator may take for what takes at most `limit`.
fn as_long_here(limit: Duration) -> Duration {
    const SLOWER: u32 = 20;
    if env::var_os(RUNNER).is_some() { limit * SLOWER } else { limit }
}

/// Reads all that comes out of a pipe, in the background so that it never fills up.
fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        match pipe.read_to_end(&mut bytes) {
            Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("no output: {error}"),
        }
    })
}

/// Returns whether this is the child that [`alone`] started.
#[must_use]
pub fn is_alone() -> bool {
    env::var_os(ALONE).is_some()
}

/// Returns the resident memory of this process in bytes, after the allocator gave back what it only
/// keeps for later.
#[must_use]
pub fn resident_bytes() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
    resident_bytes_as_it_is()
}

/// Returns the resident memory of this process in bytes, with what the allocator keeps.
pub fn resident_bytes_as_it_is() -> usize {
    // `statm` and `status` add up what each processor last handed in: some hundred KiB off where
    // there are many. The roll-up counts pages.
    let counted = fs::read_to_string("/proc/self/smaps_rollup").expect("procfs is mounted");
    field_bytes(&counted, "Rss")
}

/// Makes glibc give large blocks back as soon as they are free. Unless told otherwise it raises its
/// own threshold with every large block, and keeps what lies below; that would be measured as the
/// strategy's.
pub fn steady_allocator() {
    assert!(is_alone(), "the allocator belongs to the other tests of this process too");
    calm_allocator();
}

/// Makes glibc keep what is freed, as allocators do that have caches of their own.
pub fn keeping_allocator() {
    assert!(is_alone(), "the allocator belongs to the other tests of this process too");
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, value) in [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, libc::c_int::MAX)] {
        // SAFETY: no preconditions.
        let set = unsafe { libc::mallopt(setting, value) };
        assert_eq!(set, 1, "mallopt({setting})");
    }
}

/// Steadies the allocator as [`steady_allocator`] does, for a program that has its process to
/// itself.
pub(crate) fn calm_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, value) in [(libc::M_MMAP_THRESHOLD, 64 << 10), (libc::M_TRIM_THRESHOLD, 64 << 10)] {
        // SAFETY: no preconditions.
        let set = unsafe { libc::mallopt(setting, value) };
        assert_eq!(set, 1, "mallopt({setting})");
    }
}

/// Makes glibc write nonsense over what is freed, so that a look at it goes wrong at once. Other
/// allocators, such as AddressSanitizer's, are not told.
pub fn spoil_freed_memory() {
    assert!(is_alone(), "the allocator belongs to the other tests of this process too");
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: no preconditions.
    let _ = unsafe { libc::mallopt(libc::M_PERTURB, 0xA5) };
}

/// Returns the time that the calling thread has run for, without the time for which others had its
/// processor.
#[must_use]
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live `timespec`.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Counts the page faults of the calling thread that needed no file.
#[must_use]
pub fn thread_faults() -> usize {
    // SAFETY: a structure of plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage`.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    usize::try_from(usage.ru_minflt).expect("a count")
}

/// Returns the bytes of a page.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("a page has a size")
}

/// Counts the open descriptors.
#[must_use]
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").expect("procfs is mounted").count()
}

/// Counts the mappings.
#[must_use]
pub fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").expect("procfs is mounted").lines().count()
}

/// Reads a line of `/proc/self/status` that is given in KiB, such as `VmLck`, in bytes.
#[must_use]
pub fn status_bytes(field: &str) -> usize {
    field_bytes(&fs::read_to_string("/proc/self/status").expect("procfs is mounted"), field)
}

/// Reads the line of `text` that gives `field` in KiB, in bytes.
fn field_bytes(text: &str, field: &str) -> usize {
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let words = line.unwrap_or_else(|| panic!("no {field} in {text}"));
    let kib: usize = words.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// Returns the lines of `/proc/self/smaps` about the mapping that holds `address`.
#[must_use]
pub fn smaps(address: usize) -> String {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("procfs is mounted");
    let mut lines = smaps.lines().skip_while(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds = range.and_then(|(from, to)| {
            Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
        });
        !bounds.is_some_and(|(from, to)| (from..to).contains(&address))
    });
    let head = lines.next().expect("the address is mapped");
    let rest = lines.take_while(|line| line.split(' ').next().is_some_and(|word| word.ends_with(':')));
    std::iter::once(head).chain(rest).collect::<Vec<_>>().join("\n")
}

/// Lowers a resource limit of this process for good. Only tests that run [`alone`] call it.
pub fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    assert!(is_alone(), "a limit would hit the other tests of this process");
    // As wide as the machine's addresses, which all limits are within.
    let value = value as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the pointer is to a live `rlimit`.
    let done = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Runs `body` with a lower limit of a resource. Only tests that run [`alone`] call it.
pub fn limited<R>(resource: libc::__rlimit_resource_t, value: u64, body: impl FnOnce() -> R) -> R {
    assert!(is_alone(), "a limit would hit the other tests of this process");
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live `rlimit`.
    let done = unsafe { libc::getrlimit(resource, &raw mut before) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let set = |limit: libc::rlimit| {
        // SAFETY: the pointer is to a live `rlimit`.
        let done = unsafe { libc::setrlimit(resource, &raw const limit) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    // The other limit stays, so that this one can be raised again.
    set(libc::rlimit { rlim_cur: value as libc::rlim_t, ..before });
    let result = body();
    set(before);
    result
}

/// Becomes nobody, if this is the superuser, whom some limits do not bind. Only tests that run
/// [`alone`] call it.
#[cfg(target_os = "linux")]
pub fn give_up_privileges() {
    const NOBODY: libc::uid_t = 65_534;
    assert!(is_alone(), "the other tests of this process would lose them too");
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    // SAFETY: no preconditions.
    let done = unsafe { libc::setuid(NOBODY) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // Or else `/proc/self` would stay the superuser's.
    // SAFETY: no pointers are passed.
    let done = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Returns the address space that this process uses now, in bytes.
#[must_use]
pub fn address_space_bytes() -> usize {
    status_bytes("VmSize")
}

/// Runs `body` and fails if it took longer than `limit`.
#[track_caller]
pub fn within<R>(limit: Duration, what: &str, body: impl FnOnce() -> R) -> R {
    let limit = as_long_here(limit);
    let started = Instant::now();
    let result = body();
    let took = started.elapsed();
    assert!(took <= limit, "{what} took {took:?}, over {limit:?}");
    result
}
