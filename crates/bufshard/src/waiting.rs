//! Requests that wait for budget: by blocking, and as a future.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use bufcore::{AcquireError, Buf};
use bufkit::{Coop, Waiter};

use crate::lease::ShardLease;
use crate::pool::ShardPool;
use crate::request::{NoBlock, Turn};
use crate::shared::Shared;
use crate::wait_queue::{Look, PATIENCE};

/// How long one pauses that has to look again soon.
const SOON: Duration = Duration::from_millis(1);
/// How often a task looks again without a pause.
const LOOKS: u32 = 3;

/// The future of [`ShardPool::acquire_async`]. Dropping it leaves the queue; nothing is lost.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::builder().max_bytes(100_000).build()?;
/// let held = pool.acquire(90_000)?;
/// {
///     let mut large = pin!(pool.acquire_async(80_000));
///     let mut cx = Context::from_waker(Waker::noop());
///     assert!(large.as_mut().poll(&mut cx).is_pending());
///     assert!(pool.acquire(1500).is_err()); // it is the first in the queue
/// }
/// assert!(pool.acquire(1500).is_ok()); // dropping it has left the queue
/// # drop(held);
/// # Ok::<(), bufshard::bufcore::Error>(())
/// ```
///
/// # Executors
///
/// Any executor may poll it at any time, whether it was woken or not.
///
/// A task that always gets memory at once still lets other tasks run, also in a `select!`: after
/// 128 completed operations of tasks on a thread, polls of its futures return `Pending` and wake
/// their own task, until one of them is polled again, or 32 times.
///
/// A future that was woken and is not polled does not block other waiting requests, though requests
/// that do not wait fail for a second. After that it counts as cancelled. If it is polled later, it
/// gets its place again. A forgotten future (`mem::forget`) therefore delays others by at most a
/// second after it becomes the first in the queue.
///
/// The pool has no clock. It wakes four of the requests that have waited, and relies on one of them
/// being polled. If none of the four is ever polled again or dropped, the others sleep until the
/// next request, release, or poll of another waiting future. A thread that waits in
/// [`acquire_timeout`](ShardPool::acquire_timeout) polls twice a second.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a> {
    waiting: Waiting<'a, One>,
}

bufcore::unwind_safe!(Acquire<'_>);

/// What is asked of a pool, by a call that is refused or by one that waits.
pub(crate) trait Request {
    type Served;

    /// Whether it has several blocks, and gives those back that it found when there is none for the
    /// others.
    const GIVES_BACK: bool;

    /// Returns the bytes that are asked for.
    fn bytes(&self) -> usize;

    /// Returns how much of the budget has to be free for the request to be served, with nothing
    /// idle. The request is at most the pool's limit.
    fn need(&self, shared: &Shared) -> usize;

    /// Serves the request as one that does not wait, or as the first that waits.
    #[cfg_attr(feature = "track", track_caller)]
    fn serve(&self, pool: &ShardPool, turn: Turn) -> Result<Self::Served, NoBlock>;
}

/// A request for one buffer of so many bytes.
struct One(usize);

impl Request for One {
    type Served = Buf<ShardLease>;

    const GIVES_BACK: bool = false;

    #[inline]
    fn bytes(&self) -> usize {
        self.0
    }

    #[inline]
    fn need(&self, shared: &Shared) -> usize {
        shared.settings.need(self.0)
    }

    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn serve(&self, pool: &ShardPool, turn: Turn) -> Result<Buf<ShardLease>, NoBlock> {
        if turn == Turn::First {
            let found = pool.shared().find(self.0, turn)?;
            return Ok(pool.deliver(found, self.0));
        }
        Ok(pool.acquire_at_once::<false>(self.0)?)
    }
}

/// A request that can wait, with its place in the queue.
pub(crate) struct Waiting<'a, R> {
    pool: &'a ShardPool,
    pub(crate) request: R,
    /// Its place in the queue.
    ticket: Option<u64>,
    /// How often in a row it had to look again soon.
    looks: u32,
    coop: Coop,
}

/// What came of a request that is in the queue.
enum Attempt<T> {
    Done(Result<T, AcquireError>),
    /// It has to wait, and to look again soon if it says so.
    Waits(AcquireError, bool),
}

impl ShardPool {
    /// Acquires as [`acquire`](Self::acquire) does, but if [`max_bytes`](crate::Builder::max_bytes)
    /// has no room, blocks the thread for up to `timeout` until buffers are released.
    ///
    /// Waiting requests are served in order of arrival, through this method or
    /// [`acquire_async`](Self::acquire_async). Small requests therefore do not starve a large one.
    /// While the first request waits, no other request that needs an allocation is served. After
    /// the first request was woken and before it runs, later requests in the queue may overtake it,
    /// at most sixteen times if it runs within a tenth of a second.
    ///
    /// Cost: while a request waits, all requests and releases of the pool take their slow path, and
    /// releases take a short lock. A release wakes the requests that were not yet woken, and up to
    /// four others, as far as there is memory for them.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`AcquireError::Exhausted`] after the timeout.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufshard::ShardPool;
    /// use bufshard::bufcore::AcquireError;
    ///
    /// let pool = ShardPool::builder().max_bytes(100_000).build()?;
    /// let large = pool.acquire(90_000)?;
    /// let refused = pool.acquire_timeout(80_000, Duration::from_millis(1));
    /// assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    ///
    /// let other = std::thread::spawn(move || drop(large));
    /// assert!(pool.acquire_timeout(80_000, Duration::from_secs(10)).is_ok());
    /// # other.join().unwrap();
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_timeout(&self, bytes: usize, timeout: Duration) -> Result<Buf<ShardLease>, AcquireError> {
        let started = Instant::now();
        match self.acquire_at_once::<false>(bytes) {
            Err(AcquireError::Exhausted { .. }) => {}
            other => return other,
        }
        // In the queue until the end of this function, whatever it is.
        let mut waiting = Waiting::new(self, One(bytes));
        loop {
            match waiting.attempt(Waiter::this_thread()) {
                Attempt::Done(result) => return result,
                Attempt::Waits(error, is_soon) => {
                    let Some(left) = timeout.checked_sub(started.elapsed()) else {
                        return self.counted(Err(error));
                    };
                    // Before it counts as gone, and to look whether others do.
                    thread::park_timeout(left.min(if is_soon { SOON } else { PATIENCE / 2 }));
                }
            }
        }
    }

    /// Returns a future that acquires as [`acquire_timeout`](Self::acquire_timeout) does, without a
    /// timeout. It runs on any executor, since it needs only a waker.
    ///
    /// Dropping the future cancels the request. An undelivered buffer is not lost, and the next
    /// request in the queue is woken.
    ///
    /// # Two buffers of one task
    ///
    /// A task that holds a buffer and waits for another one of the same budget can deadlock: on
    /// itself, or with tasks that do the same. A task that needs several at once acquires all of
    /// them in one request, with [`acquire_each_async`](Self::acquire_each_async). Alternatively it
    /// waits for the largest first, and takes the others with [`acquire`](Self::acquire), which
    /// never waits, and fails if it would allocate while any request waits.
    /// [`stalled`](Self::stalled) detects a queue without progress.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), but never [`AcquireError::Exhausted`].
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().max_bytes(100_000).build()?;
    /// let large = pool.acquire(90_000)?;
    /// let mut request = pin!(pool.acquire_async(80_000)); // or `pool.acquire_async(80_000).await`
    /// assert!(request.as_mut().poll(&mut cx).is_pending());
    /// drop(large);
    /// assert!(matches!(request.poll(&mut cx), Poll::Ready(Ok(_))));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    pub fn acquire_async(&self, bytes: usize) -> Acquire<'_> {
        Acquire { waiting: Waiting::new(self, One(bytes)) }
    }
}

impl<'a, R: Request> Waiting<'a, R> {
    #[inline]
    pub(crate) fn new(pool: &'a ShardPool, request: R) -> Self {
        Self { pool, request, ticket: None, looks: 0, coop: Coop::default() }
    }

    /// Looks whether it is its turn, and whether there is memory then. Joins the queue.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn attempt(&mut self, sleeper: Waiter) -> Attempt<R::Served> {
        let shared = self.pool.shared();
        let (requested, need) = (self.request.bytes(), self.request.need(shared));
        // First says whom to wake, then looks: what comes back in between does not go unnoticed.
        let Some(look) = shared.look(&mut self.ticket, need, sleeper) else {
            return Attempt::Done(Err(AcquireError::OutOfMemory { requested }));
        };
        let all = match look {
            Look::Take { all } => all,
            Look::Wait | Look::Soon => {
                let exhausted = AcquireError::Exhausted { requested, available: 0 };
                return Attempt::Waits(exhausted, look == Look::Soon);
            }
        };
        if shared.room() < need && !all {
            return Attempt::Waits(AcquireError::Exhausted { requested, available: 0 }, false);
        }
        match self.request.serve(self.pool, Turn::First) {
            Ok(served) => Attempt::Done(Ok(served)),
            Err(NoBlock { error: error @ AcquireError::Exhausted { .. }, again }) => {
                if let Some(number) = self.ticket.filter(|_| again) {
                    shared.note_unseen(number);
                }
                if let Some(number) = self.ticket.filter(|_| R::GIVES_BACK) {
                    shared.note_returned(number);
                }
                Attempt::Waits(error, again)
            }
            Err(NoBlock { error, .. }) => Attempt::Done(Err(error)),
        }
    }

    /// Sees to it that the task is polled again soon. It pauses before that, or else an executor
    /// would do nothing but poll it.
    #[inline]
    fn look_again(&mut self, cx: &Context<'_>) {
        self.looks = self.looks.saturating_add(1);
        if self.looks > LOOKS && !cfg!(any(loom, shuttle)) {
            thread::sleep(SOON);
        } else if !cfg!(any(loom, shuttle)) {
            thread::yield_now();
        }
        cx.waker().wake_by_ref();
    }

    /// Polls the request, as the future of it does.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<R::Served, AcquireError>> {
        ready!(self.coop.poll_proceed(cx));
        if self.ticket.is_none() {
            match self.request.serve(self.pool, Turn::Any) {
                Err(NoBlock { error: AcquireError::Exhausted { .. }, .. }) => {}
                other => {
                    self.coop.made_progress();
                    return Poll::Ready(other.map_err(AcquireError::from));
                }
            }
        }
        match self.attempt(Waiter::task(cx.waker().clone())) {
            Attempt::Done(result) => {
                self.leave();
                self.coop.made_progress();
                Poll::Ready(result)
            }
            Attempt::Waits(_, true) => {
                self.look_again(cx);
                Poll::Pending
            }
            Attempt::Waits(_, false) => {
                self.looks = 0;
                Poll::Pending
            }
        }
    }
}

impl<R> Waiting<'_, R> {
    /// Gives up the place in the queue, if there is one.
    #[inline]
    fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.pool.shared().leave_queue(ticket);
        }
    }
}

impl<R> Drop for Waiting<'_, R> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Buf<ShardLease>, AcquireError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting.poll(cx)
    }
}

impl fmt::Debug for Acquire<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("bytes", &self.waiting.request.0).finish_non_exhaustive()
    }
}
