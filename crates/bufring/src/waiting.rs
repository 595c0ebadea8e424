//! Requests that wait for buffers to come back: by blocking, and as a future.

use core::fmt;
use core::future::Future;
#[cfg(feature = "track")]
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
#[cfg(feature = "std")]
use core::time::Duration;

use bufcore::strategy::{Holder, Told, WaitPlace, WaitingPool, WaitingRequest, WaitingRow};
use bufcore::{AcquireError, Buf};

use crate::ring::At;
use crate::{RingLease, RingPool};

/// The future of [`RingPool::acquire_async`]. Dropping it gives the request up; nothing is lost by
/// that.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use bufring::RingPool;
///
/// let mut ring = RingPool::new(100_000)?;
/// let held = ring.acquire(90_000)?;
/// {
///     let mut large = pin!(ring.acquire_async(80_000));
///     let mut cx = Context::from_waker(Waker::noop());
///     assert!(large.as_mut().poll(&mut cx).is_pending());
/// }
/// assert!(ring.acquire(1500).is_ok()); // it waits no more
/// # drop(held);
/// # Ok::<(), bufring::Error>(())
/// ```
///
/// # Executors
///
/// Any executor may poll it at any time, whether it was woken or not. A future that is forgotten
/// (`mem::forget`) costs one wake in vain.
///
/// Buffers that came from [`acquire_async`](RingPool::acquire_async) or
/// [`acquire_timeout`](RingPool::acquire_timeout) wake it without exception. A buffer from
/// [`acquire`](RingPool::acquire) is released by a plain store. If that release had looked at its
/// block, and had not stored, when the future began to wait, it wakes nobody. So the future polls
/// itself three times more when it has begun to wait beside such buffers. The scheduler may stop
/// the releasing thread between the two instructions for longer than that. Then the next release or
/// poll finds the memory. If that was the last buffer, and nobody polls the future, it sleeps for
/// ever. A program that cannot have that takes its buffers by `acquire_async`, or polls again after
/// some time. A thread in `acquire_timeout` looks again after a millisecond, and then after pauses
/// that double, up to half a second.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a>(WaitingRequest<Turn<'a>>);

/// A request's access to its ring.
struct Turn<'a> {
    pool: &'a mut RingPool,
    /// Who asked for the buffer. The code that polls a future is no caller of the user's.
    #[cfg(feature = "track")]
    caller: &'static Location<'static>,
}

impl<'a> Turn<'a> {
    #[cfg_attr(feature = "track", track_caller)]
    fn new(pool: &'a mut RingPool) -> Self {
        Self {
            pool,
            #[cfg(feature = "track")]
            caller: Location::caller(),
        }
    }

    /// Returns the buffer, and makes its release see whether somebody waits.
    fn watched(&self, buf: Buf<RingLease>) -> Buf<RingLease> {
        buf.lease().handle.watch();
        #[cfg(feature = "track")]
        let buf = self.pool.tracker.attach_at(buf, self.caller);
        buf
    }
}

impl WaitingPool for Turn<'_> {
    type Lease = RingLease;

    fn request(&mut self, bytes: usize) -> Result<Buf<RingLease>, AcquireError> {
        self.pool.acquire(bytes).map(|buf| self.watched(buf))
    }

    fn request_again(&mut self, bytes: usize) -> Option<Buf<RingLease>> {
        let at = self.pool.take(bytes).or_else(|| self.pool.take_beside_table(bytes))?;
        let buf = self.pool.hand_out(at, self.pool.ring.data(at), bytes);
        Some(self.watched(buf))
    }

    fn can_wait_for(&self, bytes: usize) -> bool {
        bytes <= self.pool.capacity
    }

    fn place(&self) -> &WaitPlace {
        self.pool.ring.waiter()
    }

    fn tell(&mut self, bytes: usize, is_first: bool) -> Told {
        // A request that waits has the ring to itself, and all that is live has a lease.
        self.pool.unpark_all();
        let mut teller = self.pool.teller;
        let units = self.pool.grid.units(bytes);
        let told = teller.tell(&Row { pool: self.pool, units }, is_first);
        self.pool.teller = teller;
        told
    }
}

/// The blocks of the ring, for a request that waits.
struct Row<'a> {
    pool: &'a RingPool,
    /// What it asks for.
    units: usize,
}

impl WaitingRow for Row<'_> {
    type Place = At;

    fn first(&self) -> Option<At> {
        self.behind(self.pool.ring.front())
    }

    fn behind(&self, at: At) -> Option<At> {
        let next = self.pool.ring.next(at);
        (next != self.pool.ring.end()).then_some(next)
    }

    fn has_room(&self, first: At, last: At) -> bool {
        self.units <= self.pool.ring.units_between(first, last)
    }

    fn look(&self, at: At) -> Holder {
        if at == self.pool.frame.at { Holder::Pool } else { self.pool.ring.look(at) }
    }

    fn tell(&self, at: At) -> Holder {
        self.pool.ring.tell(at)
    }
}

impl RingPool {
    /// Acquires as [`acquire`](Self::acquire) does, but blocks the thread for up to `timeout` until
    /// buffers come back, where the ring has no room.
    ///
    /// A request that waits has the ring for itself. Threads that share a ring share it in a mutex,
    /// whose order is the order of their requests. So a small request does not overtake a large one
    /// that waits.
    ///
    /// Cost: a release of a buffer that was acquired in this way takes a locked instruction in
    /// place of a plain store. A request that waits tells one buffer of each run of neighbours that
    /// together have room for it, drawn at random. The releases of those take two or three locked
    /// instructions, free a few words, and wake the request, which looks at every block then. So a
    /// request for the memory of `n` buffers is woken about `log2(n)` times, in whatever order they
    /// come back. One for the memory of two neighbours is woken by half of the releases at worst,
    /// which is a cost of `n` squared if no two neighbours come back.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). [`AcquireError::Exhausted`] when the time is over, and at
    /// once when the open frame alone is in its way. [`AcquireError::OutOfMemory`] when the
    /// allocator has no memory for the waiting itself.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufring::{AcquireError, RingPool};
    ///
    /// let mut ring = RingPool::new(100_000)?;
    /// let large = ring.acquire(90_000)?;
    /// let refused = ring.acquire_timeout(80_000, Duration::from_millis(1));
    /// assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    ///
    /// let other = std::thread::spawn(move || drop(large));
    /// assert!(ring.acquire_timeout(80_000, Duration::from_secs(10)).is_ok());
    /// # other.join().unwrap();
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_timeout(
        &mut self,
        bytes: usize,
        timeout: Duration,
    ) -> Result<Buf<RingLease>, AcquireError> {
        WaitingRequest::new(Turn::new(self), bytes).block(timeout)
    }

    /// Returns a future that acquires as `acquire_timeout` does, without an end. It runs on any
    /// executor, since it needs only a waker.
    ///
    /// Tasks share a ring in a mutex for tasks, such as tokio's, which is locked while the request
    /// waits: `ring.lock().await.acquire_async(bytes).await`. Buffers are released without the
    /// mutex.
    ///
    /// Dropping the future takes the request back. A buffer that was not delivered is not lost.
    ///
    /// # Errors
    ///
    /// As `acquire_timeout`, but [`AcquireError::Exhausted`] only when the open frame alone is in
    /// its way.
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(100_000)?;
    /// let large = ring.acquire(90_000)?;
    /// let mut request = pin!(ring.acquire_async(80_000)); // or `ring.acquire_async(80_000).await`
    /// assert!(request.as_mut().poll(&mut cx).is_pending());
    /// drop(large);
    /// assert!(matches!(request.poll(&mut cx), Poll::Ready(Ok(_))));
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_async(&mut self, bytes: usize) -> Acquire<'_> {
        Acquire(WaitingRequest::new(Turn::new(self), bytes))
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Buf<RingLease>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("bytes", &self.0.bytes()).finish_non_exhaustive()
    }
}
