//! What the loom models of the strategies share; only with `--cfg loom`.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc as StdArc;
use std::task::Wake;

use bufcore::{Buf, BufferPool, Lease};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Stands for bytes, which loom does not see: written and read exactly where a user of the bytes would. A missing order between two users
/// shows as a race on it.
#[derive(Debug)]
pub struct Shadow(UnsafeCell<u32>);

// SAFETY: none needed but loom's own check, which is what the models are for.
unsafe impl Sync for Shadow {}
// SAFETY: likewise.
unsafe impl Send for Shadow {}

impl Default for Shadow {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Shadow {
    /// One for several threads.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Writes the bytes.
    pub fn write(&self) {
        // SAFETY: loom reports the race if another access is not ordered with this one.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    /// Reads the bytes: how often they were written.
    pub fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

/// Acquires `bytes` bytes, and writes if the memory is the one that was at `address`.
pub fn acquire_again<P: BufferPool>(
    mut pool: P,
    bytes: usize,
    address: *const u8,
    shadow: &Shadow,
) -> Buf<P::Lease> {
    let again = pool.acquire(bytes).expect("the allocator has room");
    if again.as_ptr() == address {
        shadow.write();
    }
    again
}

/// The only view left of `buf` may be written to: what the other one read, it read before.
pub fn thaw_after_the_other_view_is_gone<L: Lease + 'static>(buf: Buf<L>) {
    let shadow = Shadow::shared();
    let view = buf.freeze();
    let other = view.clone();
    let reader = {
        let shadow = Arc::clone(&shadow);
        thread::spawn(move || {
            shadow.read();
            drop(other);
        })
    };
    thread::yield_now();
    if let Ok(buf) = view.try_thaw() {
        shadow.write();
        drop(buf);
    }
    reader.join().expect("the order is right");
}

/// A signal that somebody waits for: loom reports a deadlock when it never comes.
#[derive(Debug)]
pub struct Signal {
    is_given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// One that was not given.
    #[must_use]
    pub fn new() -> StdArc<Self> {
        StdArc::new(Self { is_given: Mutex::new(false), changed: Condvar::new() })
    }

    /// Gives it.
    ///
    /// # Panics
    ///
    /// When a thread of the model has panicked.
    pub fn give(&self) {
        *self.is_given.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Waits for it, and takes it.
    ///
    /// # Panics
    ///
    /// As [`give`](Self::give).
    pub fn take(&self) {
        let mut is_given = self.is_given.lock().unwrap();
        while !*is_given {
            is_given = self.changed.wait(is_given).unwrap();
        }
        *is_given = false;
    }
}

/// For futures.
impl Wake for Signal {
    fn wake(self: StdArc<Self>) {
        self.give();
    }
}

/// Runs a future to its end; when a wake-up is lost, there is none.
pub fn finish<F: Future>(mut future: Pin<&mut F>, signal: &StdArc<Signal>) -> F::Output {
    let waker = Waker::from(StdArc::clone(signal));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        signal.take();
        thread::yield_now();
    }
}
