//! Threads and tasks that wait.

use core::task::Waker;
use std::thread::Thread;

/// Names one that waits: a task of any executor, or a thread that parks.
///
/// ```
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
/// ```
#[derive(Debug)]
pub enum Sleeper {
    /// A task, which is polled again when it is woken.
    Task(Waker),
    /// A thread, which returns from `std::thread::park`, perhaps for another reason.
    Thread(Thread),
}

impl Sleeper {
    /// Names the calling thread.
    #[must_use]
    pub fn this_thread() -> Self {
        Self::Thread(std::thread::current())
    }

    /// Wakes the task or the thread. A waker is the user's code: the caller should hold no lock.
    pub fn wake(self) {
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}
