//! A thread that does what it is told, one thing after the other.
//!
//! It sleeps for moments in between, and needs no call of the system's for locks: such calls may be
//! refused.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks for something to do.
const LOOK: Duration = Duration::from_micros(50);

type Errand = Box<dyn FnOnce() + Send>;
type Slot<T> = Arc<Mutex<Option<T>>>;

/// A thread that does what it is told. Without an [`end`](Self::end) it ends some time after this.
pub struct Errands {
    /// What is to be done next. The thread ends when nobody else has this.
    next: Slot<Errand>,
    thread: JoinHandle<()>,
}

/// Something that is being done; `R` comes of it.
pub struct Begun<R>(Slot<thread::Result<R>>);

fn take<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put<T>(slot: &Slot<T>, value: T) {
    let before = slot.lock().unwrap_or_else(PoisonError::into_inner).replace(value);
    assert!(before.is_none(), "one at a time");
}

impl Errands {
    /// Starts the thread.
    #[allow(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        let next = Slot::<Errand>::default();
        let theirs = Arc::clone(&next);
        let thread = thread::spawn(move || {
            loop {
                // In this order: what was said before the end is still done.
                let is_over = Arc::strong_count(&theirs) == 1;
                match take(&theirs) {
                    Some(errand) => errand(),
                    None if is_over => break,
                    None => thread::sleep(LOOK),
                }
            }
        });
        Self { next, thread }
    }

    /// Gives the thread `errand` to do, after what it does now.
    pub fn start<R: Send + 'static>(&self, errand: impl FnOnce() -> R + Send + 'static) -> Begun<R> {
        let done = Slot::default();
        let theirs = Arc::clone(&done);
        put(&self.next, Box::new(move || put(&theirs, catch_unwind(AssertUnwindSafe(errand)))));
        Begun(done)
    }

    /// Lets the thread do `errand`, and waits for it. A panic in it continues here.
    pub fn run<R: Send + 'static>(&self, errand: impl FnOnce() -> R + Send + 'static) -> R {
        self.start(errand).wait()
    }

    /// Ends the thread, and waits for its end.
    pub fn end(self) {
        drop(self.next);
        self.thread.join().expect("panics in errands are caught");
    }
}

impl<R> Begun<R> {
    /// Waits for it. A panic in it continues here.
    pub fn wait(self) -> R {
        loop {
            match take(&self.0) {
                Some(Ok(result)) => return result,
                Some(Err(panic)) => resume_unwind(panic),
                None => thread::sleep(LOOK),
            }
        }
    }
}
