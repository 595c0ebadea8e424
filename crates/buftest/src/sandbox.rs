//! A hostile system: calls that a filter refuses, and processes that fork.

use std::time::{Duration, Instant};

use crate::process::is_alone;

/// The system refuses the call `number` with `error` from here on, in all threads of this process. Only for tests that run
/// [`alone`](crate::process::alone). `false` where such filters are not to be had.
#[cfg(target_os = "linux")]
#[must_use]
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

/// Refuses `membarrier` from here on, as [`refuse`] does; `false`, with a note, where no filters are to be had.
#[cfg(target_os = "linux")]
#[must_use]
pub fn refuse_fences() -> bool {
    let is_refused = refuse(libc::SYS_membarrier, libc::EPERM);
    if !is_refused {
        eprintln!("no filters here");
    }
    is_refused
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

/// Forks, and runs `body` in the child, which has this thread alone. Only for tests that run [`alone`](crate::process::alone).
///
/// `body` gets by without what other threads may have had at the moment of the fork. It does not return to the caller's code.
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
