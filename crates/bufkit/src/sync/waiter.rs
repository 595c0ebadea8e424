//! Threads and tasks that wait.

use core::mem::ManuallyDrop;
use core::task::Waker;
#[cfg(feature = "std")]
use std::thread::Thread;

use bufcore::author::catch_user_panic;

/// A task's waker, stored by a pool. If the task never takes it back, it is dropped on any thread,
/// with the pool or the structure that holds it. A panic of that drop is caught, so that the
/// structure is dropped completely. Without `std` the panic propagates.
///
/// ```
/// use std::task::Waker;
///
/// use bufkit::TaskWaker;
///
/// let kept = TaskWaker::new(Waker::noop().clone());
/// assert!(kept.will_wake(Waker::noop()));
/// kept.wake();
/// ```
#[derive(Debug)]
pub struct TaskWaker(ManuallyDrop<Waker>);

impl TaskWaker {
    /// Keeps `waker`.
    #[must_use]
    pub fn new(waker: Waker) -> Self {
        Self(ManuallyDrop::new(waker))
    }

    /// Returns whether it wakes the same task as `waker`.
    #[must_use]
    pub fn will_wake(&self, waker: &Waker) -> bool {
        self.0.will_wake(waker)
    }

    /// Wakes the task. The waker is the user's code, and may panic: the caller should hold no lock.
    pub fn wake(mut self) {
        // SAFETY: it is not used again.
        let waker = unsafe { ManuallyDrop::take(&mut self.0) };
        core::mem::forget(self);
        waker.wake();
    }
}

impl Drop for TaskWaker {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        let waker = unsafe { ManuallyDrop::take(&mut self.0) };
        let _ = catch_user_panic(|| drop(waker));
    }
}

/// Identifies a waiter: a task of any executor, or, with `std`, a thread that parks.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use std::sync::Mutex;
/// use std::sync::mpsc::channel;
/// use std::task::Waker;
/// use std::thread;
///
/// use bufkit::Waiter;
///
/// let queue = Mutex::new(Vec::new());
/// thread::scope(|scope| {
///     let (started, is_queued) = channel();
///     let queue = &queue;
///     scope.spawn(move || {
///         queue.lock().unwrap().push(Waiter::this_thread());
///         started.send(()).unwrap();
///         thread::park();
///     });
///     is_queued.recv().unwrap();
///     queue.lock().unwrap().push(Waiter::task(Waker::noop().clone()));
///     let sleepers = std::mem::take(&mut *queue.lock().unwrap());
///     sleepers.into_iter().for_each(Waiter::wake); // the lock is not held
/// });
/// # }
/// ```
#[derive(Debug)]
pub enum Waiter {
    /// A task, which is polled again when it is woken.
    Task(TaskWaker),
    /// A thread, which returns from `std::thread::park`, possibly spuriously.
    #[cfg(feature = "std")]
    Thread(Thread),
}

impl Waiter {
    /// Makes the waiter of the task of `waker`.
    #[must_use]
    pub fn task(waker: Waker) -> Self {
        Self::Task(TaskWaker::new(waker))
    }

    /// Makes the waiter of the calling thread.
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

    /// Wakes the task or the thread, and catches a panic of the waker.
    ///
    /// It is for releases, which destructors call. Without `std` a panic propagates.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::task::{Wake, Waker};
    ///
    /// use bufkit::Waiter;
    ///
    /// struct Panics;
    /// impl Wake for Panics {
    ///     fn wake(self: Arc<Self>) {
    ///         panic!("a waker panics");
    ///     }
    /// }
    /// # #[cfg(feature = "std")]
    /// Waiter::task(Waker::from(Arc::new(Panics))).wake_caught();
    /// ```
    pub fn wake_caught(self) {
        let _ = catch_user_panic(|| self.wake());
    }
}
