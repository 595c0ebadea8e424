//! How a thread sleeps: by the standard library, or in models by the checker's.

#[cfg(any(loom, shuttle))]
pub(crate) use modelled::{park, sleeper};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::{park, sleeper};

#[cfg(not(any(loom, shuttle)))]
mod real {
    use core::time::Duration;
    use std::thread;

    use bufkit::Waiter;

    /// Returns the sleeper to wake when this thread is to go on.
    pub(crate) fn sleeper() -> Waiter {
        Waiter::this_thread()
    }

    /// Sleeps until it was woken since the last time, or for so long, or for no reason.
    pub(crate) fn park(timeout: Option<Duration>) {
        thread::park_timeout(timeout.unwrap_or(Duration::MAX));
    }
}

#[cfg(any(loom, shuttle))]
mod modelled {
    use alloc::sync::Arc;
    use core::task::Waker;
    use core::time::Duration;
    use std::task::Wake;

    use bufkit::Waiter;
    use bufkit::sync::checker::sync::{Condvar, Mutex};

    #[derive(Default)]
    struct Parker {
        woken: Mutex<bool>,
        changed: Condvar,
    }

    impl Wake for Parker {
        fn wake(self: Arc<Self>) {
            *self.woken.lock().expect("nobody panics") = true;
            self.changed.notify_one();
        }
    }

    bufkit::sync::checker::thread_local! {
        static PARKER: Arc<Parker> = Arc::new(Parker::default());
    }

    pub(crate) fn sleeper() -> Waiter {
        Waiter::task(Waker::from(PARKER.with(Arc::clone)))
    }

    /// Sleeps until it was woken since the last time; there is no time in models.
    pub(crate) fn park(_: Option<Duration>) {
        PARKER.with(|parker| {
            let mut woken = parker.woken.lock().expect("nobody panics");
            while !*woken {
                woken = parker.changed.wait(woken).expect("nobody panics");
            }
            *woken = false;
        });
    }
}
