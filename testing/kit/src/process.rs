//! Tests in a process of their own.
//!
//! Limits, resident memory and descriptors belong to a process, and a hang must be a failure rather
//! than a test run that never ends. So trials about any of these run alone. On Linux, this has what
//! the kernel says about the process, too.

#[cfg(target_os = "linux")]
mod linux;

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub use self::linux::vast;
#[cfg(target_os = "linux")]
pub use self::linux::{
    address_space_bytes, give_up_privileges, limit, limited, mappings, open_files, resident_bytes,
    resident_bytes_as_it_is, smaps, status_bytes, thread_sleeps,
};

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
    let name = name_in_harness(module, test);
    if env::var(ALONE).is_ok_and(|value| value == name) {
        return body();
    }
    start_alone(&name, as_long_here(limit));
}

/// Returns a test's name as the harness has it: without the crate.
fn name_in_harness(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, path)) => format!("{path}::{test}"),
        None => test.to_owned(),
    }
}

/// Starts this test binary for the one test of this name, and waits for it.
///
/// Apart from [`alone`], so that it is not compiled for each test.
#[track_caller]
fn start_alone(name: &str, limit: Duration) {
    let binary = env::current_exe().expect("the test binary has a path");
    let words = env::var_os(RUNNER).into_iter().chain([binary.into_os_string()]).collect::<Vec<_>>();
    let mut command = Command::new(&words[0]);
    end_with_parent(&mut command);
    let mut child = command
        .args(&words[1..])
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, name)
        // Panics on purpose are many.
        .env("RUST_BACKTRACE", "0")
        // Binding a function at its first call saves vector registers on the stack, with the bytes
        // that were copied last. A search for a secret would find them.
        .env("LD_BIND_NOW", "1")
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

/// Lets the process end when the calling thread does: whoever ends this program for being too late
/// knows nothing of its children.
fn end_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;

        // SAFETY: one system call, which a child of a process of many threads may do.
        let set = || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        // SAFETY: it allocates nothing and takes no lock.
        unsafe { command.pre_exec(set) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
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
pub fn is_alone() -> bool {
    env::var_os(ALONE).is_some()
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

/// Measures how long the calling thread runs for, without the time for which others had its
/// processor. Where the system does not tell, it is the time that passes.
#[derive(Debug, Clone, Copy)]
pub struct ThreadTimer {
    /// When it was started: by the clock, and by the time that the thread had run for.
    began: Instant,
    worked: Duration,
}

impl ThreadTimer {
    /// The most by which the thread's own time may lag behind: Windows counts it by the ticks of
    /// its scheduler, of up to 15.6 ms.
    const LAG: Duration = Duration::from_millis(if cfg!(windows) { 16 } else { 0 });

    /// Starts to measure.
    pub fn start() -> Self {
        Self { began: Instant::now(), worked: thread_time() }
    }

    /// Returns how long the calling thread, which is the one that started it, has run for since.
    /// Short times are those that passed where the thread's own are counted in ticks.
    pub fn elapsed(&self) -> Duration {
        // Neither can be less than what the thread has run for.
        (thread_time() - self.worked + Self::LAG).min(self.began.elapsed())
    }
}

/// Returns the time that the calling thread has run for.
fn thread_time() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live `timespec`.
        let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(windows)]
    {
        use windows_sys::Win32::Foundation::FILETIME;
        use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadTimes};

        let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let [mut created, mut ended, mut kernel, mut user] = [zero; 4];
        // SAFETY: it has no preconditions.
        let thread = unsafe { GetCurrentThread() };
        // SAFETY: the handle stands for the calling thread, and each pointer is to a live
        // `FILETIME`.
        let done = unsafe {
            GetThreadTimes(thread, &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user)
        };
        assert_ne!(done, 0, "{}", std::io::Error::last_os_error());
        let units =
            [kernel, user].map(|time| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime));
        // A unit is 100 ns.
        Duration::from_nanos(100 * units.iter().sum::<u64>())
    }
    #[cfg(not(any(unix, windows)))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// Returns the bytes of a page.
pub fn page_bytes() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: no preconditions.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).expect("a page has a size")
    }
    // On each processor that Windows has.
    #[cfg(not(unix))]
    4096
}

/// Runs `body` and fails if it ran for longer than `limit`, or slept for much longer than that: on a
/// busy machine others have the processor for seconds.
#[track_caller]
pub fn within<R>(limit: Duration, what: &str, body: impl FnOnce() -> R) -> R {
    const WITH_OTHERS: u32 = 20;
    let limit = as_long_here(limit);
    let (started, timer) = (Instant::now(), ThreadTimer::start());
    let result = body();
    let (ran, took) = (timer.elapsed(), started.elapsed());
    assert!(
        ran <= limit && took <= WITH_OTHERS * limit,
        "{what} ran for {ran:?} of {took:?}, over {limit:?}"
    );
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_takes_no_time() {
        const WORK: Duration = Duration::from_millis(60);
        let timer = ThreadTimer::start();
        let mut sum = 0_u64;
        while timer.elapsed() < WORK {
            sum = std::hint::black_box((0..100_000).fold(sum, u64::wrapping_add));
        }
        let timer = ThreadTimer::start();
        thread::sleep(2 * WORK);
        if cfg!(any(unix, windows)) {
            let took = timer.elapsed();
            assert!(took < WORK, "{took:?} of {:?}", 2 * WORK);
        }
    }

    /// Also where the thread's own time is counted in ticks.
    #[test]
    fn short_work_takes_some_time() {
        let timer = ThreadTimer::start();
        std::hint::black_box((0..1000).fold(0_u64, |sum, n| std::hint::black_box(sum + n)));
        let took = timer.elapsed();
        assert!(took > Duration::ZERO, "{took:?}");
    }
}
