//! Requests that wait for budget: by blocking, and as a future.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use bufcore::strategy::Sleeper;
use bufcore::{AcquireError, Buf};

use crate::pool::{Refused, ShardPool, Turn};
use crate::wait::PATIENCE;
use crate::{ShardLease, pool::Found};

/// How long a thread sleeps that was not able to look into every cache.
const SOON: Duration = Duration::from_millis(1);

/// The future of [`ShardPool::acquire_async`]. Dropping it gives up its place in the queue; nothing is lost by that.
///
/// One that is woken and not polled within a second, because it was forgotten for instance (`mem::forget`), lets others pass when the next
/// buffer comes back or the next request is made.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a> {
    pool: &'a ShardPool,
    bytes: usize,
    /// Its place in the queue.
    ticket: Option<u64>,
}

/// What came of a request that is in the queue.
enum Attempt {
    Done(Result<Buf<ShardLease>, AcquireError>),
    /// It has to wait, and to look again after that time if nobody wakes it.
    Waits(AcquireError, Duration),
}

impl ShardPool {
    /// As [`acquire`](Self::acquire), but where the [`budget`](crate::Builder::budget) has no room, waits for up to `timeout`, blocking the
    /// thread, until buffers come back.
    ///
    /// Those who wait are served in the order in which they came, this way or through [`acquire_async`](Self::acquire_async), so a
    /// large request is not starved by small ones: until it is served, nobody else gets memory that has to be allocated. While anybody waits,
    /// all requests and releases of the pool take their slow path, and releases a short lock.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`AcquireError::Exhausted`] when the time is over.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufshard::ShardPool;
    /// use bufshard::bufcore::AcquireError;
    ///
    /// let pool = ShardPool::builder().budget(100_000).build()?;
    /// let large = pool.acquire(90_000)?;
    /// let refused = pool.acquire_timeout(80_000, Duration::from_millis(1));
    /// assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    ///
    /// let other = std::thread::spawn(move || drop(large));
    /// assert!(pool.acquire_timeout(80_000, Duration::from_secs(10)).is_ok());
    /// # other.join().unwrap();
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_timeout(&self, bytes: usize, timeout: Duration) -> Result<Buf<ShardLease>, AcquireError> {
        let started = Instant::now();
        match self.acquire(bytes) {
            Err(AcquireError::Exhausted { .. }) => {}
            other => return other,
        }
        let out_of_memory = AcquireError::OutOfMemory { requested: bytes };
        let ticket = self.shared().join_queue(Sleeper::this_thread()).ok_or(out_of_memory)?;
        // In the queue until the end of this function, whatever it is.
        let waiting = Acquire { pool: self, bytes, ticket: Some(ticket) };
        loop {
            match waiting.attempt(ticket, Sleeper::this_thread()) {
                Attempt::Done(result) => return result,
                Attempt::Waits(error, longest) => {
                    let Some(left) = timeout.checked_sub(started.elapsed()) else { return Err(error) };
                    thread::park_timeout(left.min(longest));
                }
            }
        }
    }

    /// As [`acquire_timeout`](Self::acquire_timeout) without an end, as a future: for any executor, since it needs nothing but a waker.
    ///
    /// Dropping the future takes the request back; a buffer that was not delivered is not lost, and the next in the queue is woken.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), but never [`AcquireError::Exhausted`].
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Wake}};
    /// # struct Nothing;
    /// # impl Wake for Nothing { fn wake(self: Arc<Self>) {} }
    /// # let waker = Arc::new(Nothing).into();
    /// # let mut cx = Context::from_waker(&waker);
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().budget(100_000).build()?;
    /// let large = pool.acquire(90_000)?;
    /// let mut request = pin!(pool.acquire_async(80_000)); // or `pool.acquire_async(80_000).await`
    /// assert!(request.as_mut().poll(&mut cx).is_pending());
    /// drop(large);
    /// assert!(matches!(request.poll(&mut cx), Poll::Ready(Ok(_))));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn acquire_async(&self, bytes: usize) -> Acquire<'_> {
        Acquire { pool: self, bytes, ticket: None }
    }
}

impl Acquire<'_> {
    /// Looks whether it is the ticket's turn, and whether there is memory then.
    #[cfg_attr(feature = "track", track_caller)]
    fn attempt(&self, ticket: u64, sleeper: Sleeper) -> Attempt {
        // First says whom to wake, then looks: what comes back in between does not go unnoticed.
        let is_first = self.pool.shared().renew(ticket, sleeper);
        let exhausted = AcquireError::Exhausted { requested: self.bytes, available: 0 };
        if !is_first {
            // Those in front may be forgotten.
            return Attempt::Waits(exhausted, PATIENCE);
        }
        match self.pool.find(self.bytes, Turn::First) {
            Ok(Found { block, .. }) => Attempt::Done(Ok(self.pool.hand_out(block, self.bytes))),
            Err(Refused { error: error @ AcquireError::Exhausted { .. }, again }) => {
                Attempt::Waits(error, if again { SOON } else { Duration::MAX })
            }
            Err(Refused { error, .. }) => Attempt::Done(Err(error)),
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Buf<ShardLease>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ticket = match this.ticket {
            Some(ticket) => ticket,
            None => match this.pool.acquire(this.bytes) {
                Err(AcquireError::Exhausted { requested, .. }) => {
                    let joined = this.pool.shared().join_queue(Sleeper::Task(cx.waker().clone()));
                    let Some(ticket) = joined else {
                        return Poll::Ready(Err(AcquireError::OutOfMemory { requested }));
                    };
                    this.ticket = Some(ticket);
                    ticket
                }
                other => return Poll::Ready(other),
            },
        };
        match this.attempt(ticket, Sleeper::Task(cx.waker().clone())) {
            Attempt::Done(result) => {
                this.leave();
                Poll::Ready(result)
            }
            Attempt::Waits(_, longest) => {
                if longest <= SOON {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl Acquire<'_> {
    /// Gives up the place in the queue, if there is one.
    fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.pool.shared().leave_queue(ticket);
        }
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
