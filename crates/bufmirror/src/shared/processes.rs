//! Ends in two processes: what they see of each other is in the file, they sleep on a word of it,
//! and a lock says who is there.

use core::ptr::{self, NonNull};
use core::time::Duration;

use bufkit::sync::{AtomicU32, Ordering};

use super::ShareError;
use super::file::{HEADER_BYTES, PREAMBLE_BYTES, SharedFile};
use crate::channel::waking::header::{CLOSED, Half, Header, SLEEPS};
use crate::channel::waking::transport::Transport;
use crate::map::pages::Pages;

/// Beside `SLEEPS` and `CLOSED` in a half's state: the end was there. Only an end in another
/// process can go without saying so.
const OPENED: u32 = 4;
/// How long an end sleeps at a time: a process that is killed wakes nobody, so who sleeps looks
/// after it from time to time.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The transport of an end.
pub(super) struct Processes {
    /// The header's, mapped once.
    page: Pages,
    /// Open as long as the end lives, since closing it gives the lock back. After the page: the
    /// other end then finds `CLOSED` first.
    file: SharedFile,
    /// Whether this end is the producer.
    producer: bool,
}

impl Processes {
    /// Makes the transport of the end that the caller has just locked.
    pub(super) fn new(file: SharedFile, producer: bool) -> Result<Self, ShareError> {
        let page = Pages::of_file(&file.file, 0, HEADER_BYTES, 1)?;
        let transport = Self { page, file, producer };
        // ORDER: Relaxed: the flags are hints; the lock says who is there.
        transport.mine().state.0.store(OPENED, Ordering::Relaxed);
        Ok(transport)
    }

    fn mine(&self) -> &Half {
        // SAFETY: the page is mapped as long as `self` lives, and holds a header (`header`).
        let header = unsafe { self.header().as_ref() };
        header.half(self.producer)
    }
}

// SAFETY: the page is mapped as long as the transport lives, and its atomics are all that is used
// of it (S3).
unsafe impl Transport for Processes {
    fn header(&self) -> NonNull<Header> {
        // SAFETY: within the page. What is there is a header: it has room for one behind the
        // preamble, is aligned as it, being at a page's start and the preamble a multiple of that,
        // and is atomic integers only, for which any bytes are values.
        unsafe { self.page.base().add(PREAMBLE_BYTES) }.cast()
    }

    /// Returns `true`: the system's asymmetric fence is for the threads of one process.
    fn is_in_process(&self) -> bool {
        false
    }

    fn sleep(&self, state: &AtomicU32, limit: Option<Duration>) {
        // ORDER: Relaxed: who wakes this end takes `SLEEPS` away, and the system compares.
        let seen = state.load(Ordering::Relaxed);
        if seen & SLEEPS == 0 {
            return;
        }
        let limit = limit.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
        let limit = libc::timespec {
            // Not a second.
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: the word is in memory that stays mapped, and the kernel reads it and the time
        // during the call. It returns early when the word is another one, when it is woken, when a
        // signal comes, or when the time is up; all are reasons to look again.
        unsafe { libc::syscall(libc::SYS_futex, state.as_ptr(), libc::FUTEX_WAIT, seen, &raw const limit) };
    }

    fn wake(&self, _producer: bool, state: &AtomicU32) {
        let nothing = ptr::null::<libc::timespec>();
        // SAFETY: the kernel uses the word's address only. At most one sleeps there, and a
        // stranger that does as well wakes, too.
        unsafe { libc::syscall(libc::SYS_futex, state.as_ptr(), libc::FUTEX_WAKE, i32::MAX, nothing) };
    }

    /// Returns whether the other end was there, did not close, and has lost its lock.
    fn is_dead(&self, state: &AtomicU32) -> bool {
        // ORDER: Relaxed: a hint; what the other end wrote is read by its position, and looked for
        // after this.
        let flags = state.load(Ordering::Relaxed);
        flags & OPENED != 0 && flags & CLOSED == 0 && !self.file.is_locked(!self.producer)
    }
}
