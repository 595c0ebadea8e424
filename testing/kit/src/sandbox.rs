//! A hostile system: calls that a filter refuses, processes that fork, and signals.

#[cfg(target_os = "linux")]
use std::fs;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::process::is_alone;

/// Makes the system refuse the call `number` with `error` from here on, in all threads of this
/// process. Only tests that run [`alone`](crate::process::alone) call it. Returns `false` where
/// there are no such filters.
#[cfg(target_os = "linux")]
pub fn refuse(number: libc::c_long, error: i32) -> bool {
    assert!(is_alone(), "the other tests of this process would be refused it too");
    const SET_MODE_FILTER: libc::c_long = 1;
    const ALL_THREADS: libc::c_long = 1;
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        // The number of the call.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: no pointers are passed.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the program is valid, and copied by the call.
    unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, ALL_THREADS, &raw const program) == 0 }
}

/// Refuses `membarrier` from here on, as [`refuse`] does; `false`, with a note, where no filters
/// are to be had.
#[cfg(target_os = "linux")]
pub fn refuse_fences() -> bool {
    let is_refused = refuse(libc::SYS_membarrier, libc::EPERM);
    if !is_refused {
        eprintln!("no filters here");
    }
    is_refused
}

/// Runs `body` again and again while each thread of this process gets a signal every millisecond,
/// which interrupts the call that it is in, until `least` were sent to each. Only tests that run
/// [`alone`](crate::process::alone) call it.
#[cfg(target_os = "linux")]
pub fn signalled(least: usize, mut body: impl FnMut()) {
    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn handle(_: libc::c_int) {
        // ORDER: Relaxed: a count.
        HANDLED.fetch_add(1, Relaxed);
    }

    assert!(is_alone(), "the other tests of this process would be interrupted too");
    // SAFETY: a structure of plain numbers, in which no flag is set: not the one by which calls are
    // begun again.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = (handle as extern "C" fn(libc::c_int)) as usize;
    // SAFETY: the pointer is to a live action, whose handler does nothing but count.
    let done = unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: no pointers are passed.
    let process = unsafe { libc::getpid() };
    let (is_over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            // ORDER: Relaxed: it carries nothing.
            while !is_over.load(Relaxed) {
                let threads = fs::read_dir("/proc/self/task").expect("procfs is mounted");
                for thread in threads.flatten() {
                    let number =
                        thread.file_name().to_str().and_then(|name| name.parse::<libc::c_long>().ok());
                    let number = number.expect("threads have numbers");
                    // A thread that has ended meanwhile gets none.
                    // SAFETY: no pointers are passed, and the signal is handled.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, number, libc::SIGALRM) };
                }
                // ORDER: Relaxed: a count, as below.
                rounds.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let until_then = || {
            while rounds.load(Relaxed) < least {
                body();
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(until_then));
        // ORDER: Relaxed, as above.
        is_over.store(true, Relaxed);
        sender.join().expect("signals can be sent");
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
        // ORDER: Relaxed: a count.
        assert!(HANDLED.load(Relaxed) >= rounds.load(Relaxed), "signals come");
    })
}

/// The number of the call that maps memory.
#[cfg(all(target_os = "linux", not(target_arch = "x86")))]
pub const MMAP: libc::c_long = libc::SYS_mmap;
/// The number of the call that maps memory.
#[cfg(all(target_os = "linux", target_arch = "x86"))]
pub const MMAP: libc::c_long = libc::SYS_mmap2;

/// Refuses each of `calls`, by name and number, in a child of its own: a filter stays for good.
///
/// `make` makes what the child is about, in the parent. `body` has it in the child, and calls the
/// function that it is given where the refusals are to begin. Where no filters are to be had, that
/// is noted, and nothing shown. Only tests that run [`alone`](crate::process::alone) call it.
///
/// A call of the standard library's that asserts success where that library is built for the
/// platform is left out there.
#[cfg(target_os = "linux")]
pub fn each_refused<T>(
    calls: &[(&'static str, libc::c_long)],
    limit: Duration,
    mut make: impl FnMut() -> T,
    mut body: impl FnMut(&'static str, T, &dyn Fn()),
) {
    const FINE: u8 = 7;
    const NO_FILTERS: u8 = 8;
    for &(name, number) in calls {
        if number == libc::SYS_sched_yield && cfg!(target_pointer_width = "32") {
            continue;
        }
        let mut parts = Some(make());
        let ended = forked(limit, || {
            let begin = || {
                if !refuse(number, libc::EPERM) {
                    // SAFETY: ends this process, the child, without what else is done at an end.
                    unsafe { libc::_exit(libc::c_int::from(NO_FILTERS)) };
                }
            };
            body(name, parts.take().expect("it is there"), &begin);
            FINE
        });
        if ended == Ended::With(NO_FILTERS) {
            eprintln!("no filters here");
            return;
        }
        assert_eq!(ended, Ended::With(FINE), "without {name}");
    }
}

/// How a forked child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Of itself, with what its body returned.
    With(u8),
    /// By a signal.
    Killed(i32),
    /// It did not, in time.
    Hangs,
}

/// Forks, and runs `body` in the child, which has this thread alone. Only tests that run
/// [`alone`](crate::process::alone) call it.
///
/// `body` gets by without what other threads may have had at the moment of the fork. It does not
/// return to the caller's code.
#[cfg(unix)]
pub fn forked(limit: Duration, body: impl FnOnce() -> u8) -> Ended {
    assert!(is_alone(), "the test harness has threads that a child lacks");
    // SAFETY: the child runs `body` and ends; what that needs is for the test to see to.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends this process, without what else is done at an end.
        unsafe { libc::_exit(libc::c_int::from(result.unwrap_or(u8::MAX))) };
    }
    assert!(child > 0, "the system has room for a process");
    let started = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a live number.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        assert!(ended >= 0, "it is this process's child");
        if ended == child && libc::WIFEXITED(status) {
            return Ended::With(libc::WEXITSTATUS(status) as u8);
        }
        if ended == child {
            return Ended::Killed(libc::WTERMSIG(status));
        }
        if started.elapsed() > limit {
            // SAFETY: a child that nobody has waited for yet, so the number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            return Ended::Hangs;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
