//! Wakes the thread of [`Driver::block_on`](crate::Driver::block_on), wherever it sleeps.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

use bufkit::sync::{Mutex, lock};

/// Ends a wait for completions: a file (`eventfd`) that can be read once it was rung.
#[derive(Debug, Clone)]
pub(crate) struct WakeFd(Arc<File>);

impl WakeFd {
    /// Makes a descriptor that was not signalled.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no preconditions.
        let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made, and that nobody else has.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self(Arc::new(File::from(file))))
    }

    fn signal(&self) {
        // It fails only where it was signalled 2^64 times.
        let _result = (&*self.0).write(&1_u64.to_ne_bytes());
    }

    /// Undoes all calls of `ring` so far.
    pub(crate) fn clear(&self) {
        // It fails only where it was not signalled.
        let _result = (&*self.0).read(&mut [0; 8]);
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What a thread does that runs a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It polls, or is about to sleep.
    Awake,
    /// The same, and the future was woken since the last poll began.
    Woken,
    /// It is parked.
    Parked,
    /// It waits for completions.
    Waiting,
}

/// The waker of a thread that runs a future.
#[derive(Debug)]
pub(crate) struct Sleeper {
    thread: Thread,
    /// Ends its waits for completions, if it has any.
    wake_fd: Option<WakeFd>,
    activity: Mutex<Activity>,
}

impl Sleeper {
    /// Makes the waker of this thread, whose waits for completions `wake_fd` ends.
    pub(crate) fn new(wake_fd: Option<WakeFd>) -> Self {
        Self { thread: thread::current(), wake_fd, activity: Mutex::new(Activity::Awake) }
    }

    /// Notes that the thread is about to poll. What was woken before is polled then.
    pub(crate) fn begin(&self) {
        *lock(&self.activity) = Activity::Awake;
    }

    /// Notes that the thread is about to wait for completions. `false` if it has to poll again
    /// instead.
    pub(crate) fn may_wait(&self) -> bool {
        self.sleeps(Activity::Waiting)
    }

    /// Parks the thread until the future is woken, or for no reason.
    pub(crate) fn park(&self) {
        if self.sleeps(Activity::Parked) {
            thread::park();
        }
    }

    fn sleeps(&self, how: Activity) -> bool {
        let mut activity = lock(&self.activity);
        let is_awake = *activity == Activity::Awake;
        if is_awake {
            *activity = how;
        }
        is_awake
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let was = mem::replace(&mut *lock(&self.activity), Activity::Woken);
        match (was, &self.wake_fd) {
            (Activity::Parked, _) => self.thread.unpark(),
            (Activity::Waiting, Some(wake_fd)) => wake_fd.signal(),
            // It looks before it sleeps.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_pending_until_it_is_cleared() {
        let wake_fd = WakeFd::new().expect("the system makes one");
        let is_signalled = |wake_fd: &WakeFd| {
            let mut poll = libc::pollfd { fd: wake_fd.descriptor(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, which lives through the call.
            unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
        };
        assert!(!is_signalled(&wake_fd));
        wake_fd.signal();
        wake_fd.signal();
        assert!(is_signalled(&wake_fd));
        wake_fd.clear();
        assert!(!is_signalled(&wake_fd));
        wake_fd.clear();
    }

    #[test]
    fn nobody_sleeps_who_was_woken() {
        let sleeper = Arc::new(Sleeper::new(None));
        sleeper.begin();
        sleeper.wake_by_ref();
        assert!(!sleeper.may_wait());
        // It would not come back.
        sleeper.park();
        sleeper.begin();
        assert!(sleeper.may_wait());
    }
}
