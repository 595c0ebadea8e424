//! A read or a write that may be in flight; see [`Operation`].

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io;
use std::mem;
use std::sync::Arc;

use bufcore::{Buf, Lease};
use bufkit::sync::{Mutex, lock};

use crate::driver_id::DriverId;
use crate::in_flight::Pending;
use crate::{Descriptor, ShortWrite};

/// The result of an operation, with its buffer.
///
/// ```
/// use std::fs::File;
///
/// use bufcore::HeapPool;
/// use bufuring::{Descriptor, Driver};
///
/// let driver = Driver::builder().build();
/// let file = Descriptor::new(File::open("Cargo.toml")?);
/// let mut operation = driver.read_at(&file, HeapPool::new().acquire(100)?, 9, 0);
/// let done = driver.wait(&mut operation)?;
/// assert_eq!((done.result?, &done.buf[..]), (9, &b"[package]"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Completion<L: Lease> {
    /// The number of bytes that were read or written, or the error. A read of 0 bytes is the end of
    /// the file or stream.
    pub result: io::Result<usize>,
    /// The buffer. After a read, it also contains the new bytes; after a write, it is unchanged.
    pub buf: Buf<L>,
    pub(crate) kind: Kind,
}

impl<L: Lease> Completion<L> {
    /// Returns the buffer of a successful read, or of a complete write.
    ///
    /// A read may have appended fewer bytes than requested. The length of the buffer shows how
    /// many.
    ///
    /// # Errors
    ///
    /// The error of the operation, or [`ShortWrite`] if fewer bytes were written than the buffer
    /// has. The buffer is dropped then. To write the rest, use [`result`](Self::result) and
    /// [`buf`](Self::buf) instead.
    pub fn into_result(self) -> io::Result<Buf<L>> {
        let (count, len) = (self.result?, self.buf.len());
        match self.kind {
            Kind::Write if count < len => Err(ShortWrite { written: count, len }.into()),
            _ => Ok(self.buf),
        }
    }
}

impl<L: Lease> fmt::Debug for Completion<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("result", &self.result).field("len", &self.buf.len()).finish()
    }
}

/// Whether the kernel writes to the buffer or reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// What a driver and a handle share of an operation. Its memory is here alone while the kernel may
/// use it (U1).
pub(crate) struct OperationCell<L: Lease> {
    kind: Kind,
    /// The most bytes that can be transferred.
    len: usize,
    /// Kept open for the kernel.
    _file: Descriptor,
    state: Mutex<State<L>>,
}

enum State<L: Lease> {
    /// The kernel may use the buffer's memory.
    InFlight { buf: Buf<L>, waker: Option<Waker> },
    /// The same, and the handle was dropped.
    Dropped(Buf<L>),
    /// It is done with it.
    Completed(Completion<L>),
    /// The result was taken.
    Taken,
}

impl<L: Lease> OperationCell<L> {
    pub(crate) fn new(kind: Kind, len: usize, file: Descriptor, buf: Buf<L>) -> Self {
        Self { kind, len, _file: file, state: Mutex::new(State::InFlight { buf, waker: None }) }
    }

    fn take(&self) -> Option<Completion<L>> {
        let mut state = lock(&self.state);
        match mem::replace(&mut *state, State::Taken) {
            State::Completed(done) => Some(done),
            other => {
                *state = other;
                None
            }
        }
    }

    fn is_in_flight(&self) -> bool {
        matches!(*lock(&self.state), State::InFlight { .. })
    }

    /// Notes that the handle was dropped. Returns whether the kernel may use the buffer's memory.
    fn give_up(&self) -> bool {
        let mut state = lock(&self.state);
        let waker = match mem::replace(&mut *state, State::Taken) {
            State::InFlight { buf, waker } => {
                *state = State::Dropped(buf);
                waker
            }
            other => {
                *state = other;
                return false;
            }
        };
        drop(state);
        // Users' code, with no lock held.
        drop(waker);
        true
    }
}

impl<L: Lease> Pending for OperationCell<L> {
    fn complete(&self, result: i32, _: u32) {
        let mut state = lock(&self.state);
        let (mut buf, waker) = match mem::replace(&mut *state, State::Taken) {
            State::InFlight { buf, waker } => (buf, waker),
            State::Dropped(buf) => {
                // Users' code, with no lock held.
                drop(state);
                return drop(buf);
            }
            State::Completed(_) | State::Taken => return,
        };
        let result = match usize::try_from(result) {
            Ok(count) => Ok(count.min(self.len)),
            Err(_) => Err(io::Error::from_raw_os_error(result.wrapping_neg())),
        };
        if let (Kind::Read, &Ok(count)) = (self.kind, &result) {
            // At most `len`, which was at most what the buffer had room for.
            buf.commit(count);
        }
        *state = State::Completed(Completion { result, buf, kind: self.kind });
        drop(state);
        // Users' code, with no lock held.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_unwanted(&self) -> bool {
        matches!(*lock(&self.state), State::Dropped(_))
    }
}

/// Owns a buffer while the kernel reads into it, or writes it.
///
/// [`Driver::wait`](crate::Driver::wait) waits for it. It is also a future, which makes progress
/// while its driver is waited on ([`Driver::block_on`](crate::Driver::block_on)).
///
/// Dropping it discards the result, but not the memory: the driver keeps the buffer until the
/// kernel has completed the operation. The driver cancels the operation at its next submission.
/// Some or all of a write may have happened before that.
///
/// Forgetting it keeps the buffer in use forever.
///
/// Threads: any thread may await and drop it.
///
/// ```
/// use std::fs::File;
///
/// use bufcore::HeapPool;
/// use bufuring::{Descriptor, Driver};
///
/// let (driver, mut pool) = (Driver::builder().build(), HeapPool::new());
/// let file = Descriptor::new(File::open("Cargo.toml")?);
/// let text = driver.block_on(async {
///     let first = driver.read_at(&file, pool.acquire(4)?, 4, 0);
///     let second = driver.read_at(&file, pool.acquire(4)?, 4, 4);
///     let (second, first) = (second.await.into_result()?, first.await.into_result()?);
///     Ok::<_, Box<dyn std::error::Error>>([&first[..], &second[..]].concat())
/// })?;
/// assert_eq!(text, b"[package");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an operation that is dropped is cancelled"]
pub struct Operation<L: Lease> {
    /// `Some` until it is dropped.
    cell: Option<Arc<OperationCell<L>>>,
    /// The number that the driver has for it.
    key: u64,
    driver_id: DriverId,
}

impl<L: Lease> Operation<L> {
    pub(crate) fn new(cell: Arc<OperationCell<L>>, key: u64, driver_id: DriverId) -> Self {
        Self { cell: Some(cell), key, driver_id }
    }

    /// An operation that needed no kernel, or none that answers later.
    pub(crate) fn completed(file: Descriptor, done: Completion<L>, driver_id: DriverId) -> Self {
        let (kind, state) = (done.kind, Mutex::new(State::Completed(done)));
        Self::new(Arc::new(OperationCell { kind, len: 0, _file: file, state }), u64::MAX, driver_id)
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Whether the driver with this driver_id started it.
    pub(crate) fn is_of(&self, driver_id: &DriverId) -> bool {
        self.driver_id.is(driver_id)
    }

    /// Returns whether the result is available, so that a wait returns at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.cell.as_ref().is_some_and(|cell| cell.is_in_flight())
    }

    /// The result, once.
    pub(crate) fn take(&mut self) -> Option<Completion<L>> {
        let done = self.cell.as_ref()?.take()?;
        // With the share of the file.
        self.cell = None;
        Some(done)
    }
}

impl<L: Lease> Future for Operation<L> {
    type Output = Completion<L>;

    /// Completes when the driver has the result.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned the result.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion<L>> {
        if let Some(done) = self.take() {
            return Poll::Ready(done);
        }
        let Some(cell) = &self.cell else { panic!("the result was taken already") };
        // Users' code, with no lock held.
        let mut waker = Some(context.waker().clone());
        let mut state = lock(&cell.state);
        match &mut *state {
            State::InFlight { waker: place, .. } => mem::swap(place, &mut waker),
            // It completed meanwhile, on another thread.
            State::Completed(_) => {
                drop(state);
                return self.take().map_or(Poll::Pending, Poll::Ready);
            }
            State::Dropped(_) | State::Taken => panic!("the result was taken already"),
        }
        drop(state);
        drop(waker);
        Poll::Pending
    }
}

impl<L: Lease> Drop for Operation<L> {
    fn drop(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        if cell.give_up() {
            self.driver_id.operation_dropped(self.key);
        }
    }
}

impl<L: Lease> fmt::Debug for Operation<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
