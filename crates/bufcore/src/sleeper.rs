//! Threads and tasks that wait.

use core::task::Waker;
#[cfg(feature = "std")]
use std::thread::Thread;

/// Names one that waits: a task of any executor, or, with `std`, a thread that parks.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use std::sync::Mutex;
/// use std::sync::mpsc::channel;
/// use std::task::Waker;
/// use std::thread;
///
/// use bufcore::strategy::Sleeper;
///
/// let queue = Mutex::new(Vec::new());
/// thread::scope(|scope| {
///     let (started, is_queued) = channel();
///     let queue = &queue;
///     scope.spawn(move || {
///         queue.lock().unwrap().push(Sleeper::this_thread());
///         started.send(()).unwrap();
///         thread::park();
///     });
///     is_queued.recv().unwrap();
///     queue.lock().unwrap().push(Sleeper::Task(Waker::noop().clone()));
///     let sleepers = std::mem::take(&mut *queue.lock().unwrap());
///     sleepers.into_iter().for_each(Sleeper::wake); // the lock is not held
/// });
/// # }
/// ```
#[derive(Debug)]
pub enum Sleeper {
    /// A task, which is polled again when it is woken.
    Task(Waker),
    /// A thread, which returns from `std::thread::park`, perhaps for another reason.
    #[cfg(feature = "std")]
    Thread(Thread),
}

impl Sleeper {
    /// Names the calling thread.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn this_thread() -> Self {
        Self::Thread(std::thread::current())
    }

    /// Wakes the task or the thread. A waker is the user's code: the caller should hold no lock.
    pub fn wake(self) {
        match self {
            Self::Task(waker) => waker.wake(),
            #[cfg(feature = "std")]
            Self::Thread(thread) => thread.unpark(),
        }
    }

    /// Wakes the task or the thread, and ends quietly when the waker panics: it has done what it
    /// was to do as well as it can.
    ///
    /// It is for releases, which are called by destructors. Without `std` a panic passes through.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::task::{Wake, Waker};
    ///
    /// use bufcore::strategy::Sleeper;
    ///
    /// struct Panics;
    /// impl Wake for Panics {
    ///     fn wake(self: Arc<Self>) {
    ///         panic!("a waker panics");
    ///     }
    /// }
    /// # #[cfg(feature = "std")]
    /// Sleeper::Task(Waker::from(Arc::new(Panics))).wake_caught();
    /// ```
    pub fn wake_caught(self) {
        // What the model checker finds is not to be caught.
        #[cfg(all(feature = "std", not(any(loom, shuttle))))]
        {
            let wake = core::panic::AssertUnwindSafe(|| self.wake());
            if let Err(payload) = std::panic::catch_unwind(wake) {
                // Its drop might panic too.
                core::mem::forget(payload);
            }
        }
        #[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
        self.wake();
    }
}
