//! A request that waits for a pool which serves one request at a time.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
#[cfg(feature = "std")]
use core::time::Duration;

use crate::strategy::{Sleeper, WaitPlace};
use crate::{AcquireError, Buf, Lease};

/// How often a task looks again without being woken when it has told buffers whose releases may
/// not have seen it.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 3 };
/// The first pause of a thread then; each next one is twice as long.
#[cfg(feature = "std")]
const SOON: Duration = Duration::from_millis(1);
/// The longest pause of a thread that waits.
#[cfg(feature = "std")]
const LONGEST: Duration = Duration::from_millis(500);

/// How many buffers were told that somebody waits.
///
/// ```
/// use bufcore::strategy::Told;
///
/// // Three buffers were told, and one of them is released by a plain store.
/// let told = Told { out: 3, plain: 1 };
/// assert!(told.plain <= told.out);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The buffers that were told: each of their releases wakes whoever waits. None when no
    /// releases can help.
    pub out: usize,
    /// Those of them that were handed out as ones whose release is a plain store, and that this
    /// request tells for the first time. Such a release may have begun before; then it wakes
    /// nobody.
    pub plain: usize,
}

/// Serves one request at a time, and can say when buffers come back: what [`WaitingRequest`] has to
/// know of a pool. A strategy implements it for a type of its own that borrows the pool.
///
/// A request that waits has the pool for itself (`&mut`). So there is one at a time, and no queue.
/// It puts itself into the [`WaitPlace`], tells buffers that are out, and looks for memory after
/// that. A release that was told takes the request out of the place, frees its memory, and wakes.
/// [`Teller`](crate::strategy::Teller) decides which buffers are told.
///
/// No unsafe code depends on what an implementor does.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use bufcore::strategy::{Told, WaitPlace, WaitingPool, WaitingRequest};
/// use bufcore::{AcquireError, Buf, HeapLease, HeapPool};
///
/// /// A pool that lends one buffer, which comes back when its owner says so.
/// #[derive(Default)]
/// struct One {
///     is_out: std::cell::Cell<bool>,
///     place: WaitPlace,
/// }
///
/// impl One {
///     fn comes_back(&self) {
///         self.is_out.set(false);
///         if let Some(waiter) = self.place.take() {
///             waiter.wake();
///         }
///     }
/// }
///
/// struct Turn<'a>(&'a One);
///
/// impl WaitingPool for Turn<'_> {
///     type Lease = HeapLease;
///     fn request(&mut self, bytes: usize) -> Result<Buf<HeapLease>, AcquireError> {
///         let refused = AcquireError::Exhausted { requested: bytes, available: 0 };
///         self.request_again(bytes).ok_or(refused)
///     }
///     fn request_again(&mut self, bytes: usize) -> Option<Buf<HeapLease>> {
///         if self.0.is_out.replace(true) { None } else { HeapPool::new().acquire(bytes).ok() }
///     }
///     fn can_wait_for(&self, _: usize) -> bool {
///         true
///     }
///     fn place(&self) -> &WaitPlace {
///         &self.0.place
///     }
///     fn tell(&mut self, _: usize, _: bool) -> Told {
///         Told { out: self.0.is_out.get().into(), plain: 0 }
///     }
/// }
///
/// let pool = One::default();
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(pin!(WaitingRequest::new(Turn(&pool), 64)).poll(&mut cx).is_ready());
/// let mut second = pin!(WaitingRequest::new(Turn(&pool), 64));
/// assert!(second.as_mut().poll(&mut cx).is_pending());
/// pool.comes_back();
/// assert!(matches!(second.poll(&mut cx), Poll::Ready(Ok(_))));
/// ```
pub trait WaitingPool {
    /// The lease of the pool's buffers.
    type Lease: Lease;

    /// Acquires as the pool's `acquire` does, with a lease whose release sees every waiter.
    ///
    /// # Errors
    ///
    /// As the pool's `acquire`.
    #[cfg_attr(feature = "track", track_caller)]
    fn request(&mut self, bytes: usize) -> Result<Buf<Self::Lease>, AcquireError>;

    /// Acquires as [`request`](Self::request) does, from memory that has come back to the pool.
    /// What it does not find is not counted as a refusal.
    #[cfg_attr(feature = "track", track_caller)]
    fn request_again(&mut self, bytes: usize) -> Option<Buf<Self::Lease>>;

    /// Returns whether releases to this pool can make room for `bytes` bytes.
    fn can_wait_for(&self, bytes: usize) -> bool;

    /// Returns the place of the request that waits.
    fn place(&self) -> &WaitPlace;

    /// Tells buffers that are out that somebody waits for `bytes` bytes, and counts them. There is
    /// memory for the request when this returns, or not before one that was told has come back.
    /// `is_first` says that it is the first call for the request.
    fn tell(&mut self, bytes: usize, is_first: bool) -> Told;
}

/// A request that waits for a pool: a future, and by [`block`](Self::block) a call that blocks.
/// Dropping it gives it up. [`WaitingPool`] has an example of one that waits.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use core::time::Duration;
///
/// use bufcore::strategy::{Told, WaitPlace, WaitingPool, WaitingRequest};
/// use bufcore::{AcquireError, Buf, HeapLease, HeapPool};
///
/// /// The heap, for which nobody ever has to wait.
/// #[derive(Default)]
/// struct Heap(WaitPlace);
///
/// impl WaitingPool for Heap {
///     type Lease = HeapLease;
///     fn request(&mut self, bytes: usize) -> Result<Buf<HeapLease>, AcquireError> {
///         HeapPool::new().acquire(bytes)
///     }
///     fn request_again(&mut self, bytes: usize) -> Option<Buf<HeapLease>> {
///         self.request(bytes).ok()
///     }
///     fn can_wait_for(&self, _: usize) -> bool {
///         false
///     }
///     fn place(&self) -> &WaitPlace {
///         &self.0
///     }
///     fn tell(&mut self, _: usize, _: bool) -> Told {
///         Told { out: 0, plain: 0 }
///     }
/// }
///
/// let buf = WaitingRequest::new(Heap::default(), 64).block(Duration::ZERO)?;
/// assert_eq!(buf.capacity(), 64);
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
pub struct WaitingRequest<P: WaitingPool> {
    pool: P,
    bytes: usize,
    /// Why the pool refused it at first, while it waits.
    refused: Option<AcquireError>,
    /// How often the task looks again without being woken.
    looks: u32,
}

/// What came of one look.
enum Attempt<L: Lease> {
    Done(Result<Buf<L>, AcquireError>),
    /// It has to wait, since it was refused. A release may have missed it if it says so.
    Waits {
        #[cfg(feature = "std")]
        refused: AcquireError,
        is_doubtful: bool,
    },
}

impl<P: WaitingPool> WaitingRequest<P> {
    /// Makes a request for `bytes` bytes, which does nothing until it is polled.
    pub fn new(pool: P, bytes: usize) -> Self {
        Self { pool, bytes, refused: None, looks: 0 }
    }

    /// Returns how many bytes it asks for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Looks for memory. If there is none, says whom to wake, tells buffers that are out, and looks
    /// once more: what came back in between does not go unnoticed.
    #[cfg_attr(feature = "track", track_caller)]
    fn attempt(&mut self, sleeper: impl FnOnce() -> Sleeper) -> Attempt<P::Lease> {
        let bytes = self.bytes;
        let error = match self.refused {
            Some(error) => {
                if let Some(buf) = self.pool.request_again(bytes) {
                    return self.done(Ok(buf));
                }
                error
            }
            None => match self.pool.request(bytes) {
                // A fallback may have no memory. What is waited for is the pool's own.
                Err(error @ (AcquireError::Exhausted { .. } | AcquireError::OutOfMemory { .. }))
                    if self.pool.can_wait_for(bytes) =>
                {
                    error
                }
                result => return Attempt::Done(result),
            },
        };
        // The user's code, before anything is changed.
        let sleeper = sleeper();
        let is_first = self.refused.replace(error).is_none();
        let Some(before) = self.pool.place().put(sleeper) else {
            return self.done(Err(AcquireError::OutOfMemory { requested: bytes }));
        };
        let told = self.pool.tell(bytes, is_first);
        let attempt = match self.pool.request_again(bytes) {
            Some(buf) => self.done(Ok(buf)),
            // An open frame has the rest, and nobody else could give it back.
            None if told.out == 0 => self.done(Err(error)),
            None => Attempt::Waits {
                #[cfg(feature = "std")]
                refused: error,
                is_doubtful: told.plain > 0,
            },
        };
        // The user's code, perhaps.
        drop(before);
        attempt
    }

    /// Waits no more.
    fn done(&mut self, result: Result<Buf<P::Lease>, AcquireError>) -> Attempt<P::Lease> {
        self.leave();
        Attempt::Done(result)
    }

    /// Leaves the place, if it is there.
    fn leave(&mut self) {
        if self.refused.take().is_some() {
            drop(self.pool.place().take());
        }
    }

    /// Blocks the thread until there is a buffer, for up to `timeout`.
    ///
    /// # Errors
    ///
    /// As the pool's `acquire`. When the time is over, the error with which the pool refused it at
    /// first: [`AcquireError::Exhausted`], or [`AcquireError::OutOfMemory`] of a fallback.
    #[cfg(feature = "std")]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn block(mut self, timeout: Duration) -> Result<Buf<P::Lease>, AcquireError> {
        let started = std::time::Instant::now();
        let mut pause = LONGEST;
        loop {
            match self.attempt(Sleeper::this_thread) {
                Attempt::Done(result) => return result,
                Attempt::Waits { refused, is_doubtful } => {
                    let Some(left) = timeout.checked_sub(started.elapsed()) else { return Err(refused) };
                    pause = if is_doubtful { SOON } else { LONGEST.min(2 * pause) };
                    std::thread::park_timeout(left.min(pause));
                }
            }
        }
    }
}

impl<P: WaitingPool + Unpin> Future for WaitingRequest<P> {
    type Output = Result<Buf<P::Lease>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.attempt(|| Sleeper::task(cx.waker().clone())) {
            Attempt::Done(result) => Poll::Ready(result),
            Attempt::Waits { is_doubtful, .. } => {
                if is_doubtful {
                    this.looks = LOOKS;
                }
                if let Some(left) = this.looks.checked_sub(1) {
                    this.looks = left;
                    #[cfg(feature = "std")]
                    std::thread::yield_now();
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl<P: WaitingPool> Drop for WaitingRequest<P> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<P: WaitingPool> fmt::Debug for WaitingRequest<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingRequest").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
