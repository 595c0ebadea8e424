//! A thread that does what it is told, one thing after the other.
//!
//! It sleeps for moments in between, and needs no call of the system's for locks: such calls may be
//! refused.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks for something to do.
const LOOK: Duration = Duration::from_micros(50);

type Errand = Box<dyn FnOnce() + Send>;

/// What is to be done next, and whether that is all.
#[derive(Default)]
struct Told {
    next: Mutex<Option<Errand>>,
    is_over: AtomicBool,
}

/// A thread that does what it is told. Without an [`end`](Self::end) it ends some time after this.
pub struct Errands {
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
}

/// Something that is being done; `R` comes of it.
#[must_use]
pub struct Begun<R>(Arc<Mutex<Option<thread::Result<R>>>>);

impl Errands {
    /// Starts the thread.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        let told = Arc::new(Told::default());
        let theirs = Arc::clone(&told);
        let thread = thread::spawn(move || {
            loop {
                // In this order: what was said before the end is still done.
                // ORDER: SeqCst, for ease; here and below.
                let is_over = theirs.is_over.load(SeqCst);
                let next = theirs.next.lock().unwrap_or_else(PoisonError::into_inner).take();
                match next {
                    Some(errand) => errand(),
                    None if is_over => break,
                    None => thread::sleep(LOOK),
                }
            }
        });
        Self { told, thread: Some(thread) }
    }

    /// Gives the thread `errand` to do, after what it does now.
    pub fn start<R: Send + 'static>(&self, errand: impl FnOnce() -> R + Send + 'static) -> Begun<R> {
        let done = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&done);
        let errand: Errand = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(errand));
            *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let replaced = self.told.next.lock().unwrap_or_else(PoisonError::into_inner).replace(errand);
        assert!(replaced.is_none(), "one at a time");
        Begun(done)
    }

    /// Lets the thread do `errand`, and waits for it. A panic in it continues here.
    pub fn run<R: Send + 'static>(&self, errand: impl FnOnce() -> R + Send + 'static) -> R {
        self.start(errand).wait()
    }

    /// Ends the thread, and waits for its end.
    pub fn end(mut self) {
        self.tell_the_end();
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("panics in errands are caught");
    }

    fn tell_the_end(&self) {
        // ORDER: SeqCst, as above.
        self.told.is_over.store(true, SeqCst);
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        self.tell_the_end();
    }
}

impl fmt::Debug for Errands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errands").finish_non_exhaustive()
    }
}

impl<R> Begun<R> {
    /// Waits for it. A panic in it continues here.
    pub fn wait(self) -> R {
        loop {
            let result = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            match result {
                Some(Ok(result)) => return result,
                Some(Err(panic)) => resume_unwind(panic),
                None => thread::sleep(LOOK),
            }
        }
    }
}

impl<R> fmt::Debug for Begun<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}
