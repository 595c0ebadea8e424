//! A thread that has no signals: what they are for is the program's business, and a program that
//! waits for some has blocked them in the threads that it knows.

#[cfg(unix)]
pub(crate) use self::unix::block;

/// There are no signals.
#[cfg(not(unix))]
pub(crate) fn block() {}

#[cfg(unix)]
mod unix {
    use core::ffi::c_int;
    use core::ptr;

    /// As `SIG_SETMASK`.
    const SET: c_int = if cfg!(not(any(target_os = "linux", target_os = "android"))) {
        3
    } else if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        4
    } else if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
        3
    } else {
        2
    };

    /// As `sigset_t`, or longer.
    #[repr(C)]
    struct Signals([u64; 16]);

    unsafe extern "C" {
        fn sigfillset(set: *mut Signals) -> c_int;
        fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
    }

    /// Blocks all signals of this thread, and of threads that it starts, until what it returns is
    /// dropped.
    pub(crate) fn block() -> impl Drop {
        let (mut all, mut old) = (Signals([0; 16]), Signals([0; 16]));
        // SAFETY: a set that is as long.
        unsafe { sigfillset(&raw mut all) };
        // SAFETY: likewise. It does not fail with a known `how`.
        unsafe { pthread_sigmask(SET, &raw const all, &raw mut old) };
        Blocked(old)
    }

    /// What the thread had blocked before.
    struct Blocked(Signals);

    impl Drop for Blocked {
        fn drop(&mut self) {
            // SAFETY: a set from the system.
            unsafe { pthread_sigmask(SET, &raw const self.0, ptr::null_mut()) };
        }
    }
}
