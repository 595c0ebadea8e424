//! Several buffers of one budget at once: all of them, or none.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bufcore::AcquireError;

use crate::lease::ShardBuf;
use crate::pool::ShardPool;
use crate::release;
use crate::request::{NoBlock, Obtained, Turn};
use crate::shared::Shared;
use crate::waiting::{Request, Waiting};

/// The future of [`ShardPool::acquire_each_async`]. Dropping it leaves the queue; nothing is lost.
/// Executors poll it as they poll an [`Acquire`](crate::Acquire).
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::builder().max_bytes(100_000).build()?;
/// let held = pool.acquire(50_000)?;
/// {
///     let mut both = pin!(pool.acquire_each_async(&[1000, 50_000]));
///     let mut cx = Context::from_waker(Waker::noop());
///     assert!(both.as_mut().poll(&mut cx).is_pending()); // it holds nothing
/// }
/// assert!(pool.acquire(30_000).is_ok());
/// # drop(held);
/// # Ok::<(), bufshard::bufcore::Error>(())
/// ```
#[must_use = "futures do nothing unless they are polled"]
pub struct AcquireEach<'a> {
    waiting: Waiting<'a, Each<'a>>,
}

bufcore::unwind_safe!(AcquireEach<'_>);

/// A request for a buffer of each of these sizes.
struct Each<'a>(&'a [usize]);

impl ShardPool {
    /// Takes one empty buffer with room for each of `sizes` bytes, in their order, or none at all.
    /// A size of 0 is a buffer of no bytes, as in [`acquire`](Self::acquire), and an empty list
    /// returns an empty list.
    ///
    /// Contents: as in [`acquire`](Self::acquire). Cost: an `acquire` on the slow path for each
    /// size, and two allocations.
    ///
    /// # Errors
    ///
    /// The numbers of the errors are those of the whole list.
    ///
    /// - [`AcquireError::TooLarge`] if one size can never be served, or if all together take more
    ///   than the [`max_bytes`](crate::Builder::max_bytes). Its `limit` is then the usable part of
    ///   `max_bytes`.
    /// - [`AcquireError::Exhausted`] if they take more than is available now. A concurrent request
    ///   may fail because of memory that this one takes and returns.
    /// - [`AcquireError::OutOfMemory`] if the allocator fails.
    ///
    /// ```
    /// use bufshard::{AcquireError, ShardPool};
    ///
    /// let pool = ShardPool::builder().max_bytes(100_000).build()?;
    /// let bufs = pool.acquire_each(&[100, 30_000])?;
    /// assert!(bufs[0].capacity() >= 100 && bufs[1].capacity() >= 30_000);
    /// let refused = pool.acquire_each(&[30_000, 40_000]).unwrap_err();
    /// assert!(matches!(refused, AcquireError::Exhausted { requested: 70_000, .. }));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_each(&self, sizes: &[usize]) -> Result<Vec<ShardBuf>, AcquireError> {
        self.counted(Each(sizes).serve(self, Turn::Any).map_err(AcquireError::from))
    }

    /// Returns a future that acquires as [`acquire_each`](Self::acquire_each) does, and waits as
    /// [`acquire_async`](Self::acquire_async) does: in the same queue, as one request for the sum.
    ///
    /// While it waits it holds none of the buffers. Tasks that acquire all buffers at once
    /// therefore do not deadlock.
    ///
    /// # Errors
    ///
    /// As [`acquire_each`](Self::acquire_each), but never [`AcquireError::Exhausted`].
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().max_bytes(100_000).build()?;
    /// let held = pool.acquire(90_000)?;
    /// let sizes = [1000, 80_000];
    /// let mut request = pin!(pool.acquire_each_async(&sizes)); // or `.await`
    /// assert!(request.as_mut().poll(&mut cx).is_pending());
    /// drop(held);
    /// let Poll::Ready(bufs) = request.poll(&mut cx) else { panic!("there is room") };
    /// assert_eq!(bufs?.len(), 2);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    pub fn acquire_each_async<'a>(&'a self, sizes: &'a [usize]) -> AcquireEach<'a> {
        AcquireEach { waiting: Waiting::new(self, Each(sizes)) }
    }

    /// Returns how long the first request in the queue has been waiting, or `None` if no request
    /// waits.
    ///
    /// A time that only grows means that the queue makes no progress: a buffer is kept for long,
    /// perhaps by a task that waits for another one. A request waits until its task runs again,
    /// also after memory became free: a loop that evicts until nobody waits evicts too much. A
    /// future that was woken and not polled for a second counts as cancelled.
    ///
    /// Cost: a load; while a request waits, a short lock.
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Waker}};
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().max_bytes(100_000).build()?;
    /// let first = pool.acquire(60_000)?;
    /// assert_eq!(pool.stalled(), None);
    /// let mut second = pin!(pool.acquire_async(60_000)); // by the task that holds the first
    /// assert!(second.as_mut().poll(&mut cx).is_pending());
    /// assert!(pool.stalled().is_some());
    /// # drop(first);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn stalled(&self) -> Option<Duration> {
        self.shared().longest_wait()
    }
}

impl Each<'_> {
    /// Refuses what can never be served.
    #[inline]
    fn check(&self, shared: &Shared) -> Result<(), AcquireError> {
        let (limit, budget) = (shared.settings.max_capacity(), shared.settings.max_bytes);
        if let Some(&requested) = self.0.iter().find(|&&bytes| bytes > limit) {
            return Err(AcquireError::TooLarge { requested, limit });
        }
        let sizes = self.0.iter().copied().filter(|&bytes| bytes > 0);
        let (requested, need) = (self.bytes(), shared.settings.most_need(sizes));
        if need > budget {
            // Without what lies around the bytes.
            let limit = budget.saturating_sub(need - requested);
            return Err(AcquireError::TooLarge { requested, limit });
        }
        Ok(())
    }

    /// Finds a block for each size of at least one byte, into `found`, which has room.
    #[inline]
    fn find(&self, shared: &Shared, turn: Turn, found: &mut Vec<Obtained>) -> Result<(), NoBlock> {
        let mut before = 0_usize;
        for &bytes in self.0.iter().filter(|&&bytes| bytes > 0) {
            match shared.find(bytes, turn) {
                Ok(block) => found.push(block),
                Err(NoBlock { error, again }) => {
                    let requested = self.bytes();
                    let error = match error {
                        AcquireError::Exhausted { available, .. } => {
                            let available = before.saturating_add(available);
                            AcquireError::Exhausted { requested, available }
                        }
                        _ => AcquireError::OutOfMemory { requested },
                    };
                    return Err(NoBlock { error, again });
                }
            }
            before = before.saturating_add(bytes);
        }
        Ok(())
    }
}

impl Request for Each<'_> {
    type Served = Vec<ShardBuf>;

    const GIVES_BACK: bool = true;

    #[inline]
    fn bytes(&self) -> usize {
        self.0.iter().fold(0, |sum: usize, &bytes| sum.saturating_add(bytes))
    }

    /// With the colours that take the most: less than what the blocks take would let the request
    /// wake itself again and again.
    #[inline]
    fn need(&self, shared: &Shared) -> usize {
        let sizes = self.0.iter().filter(|&&bytes| bytes > 0);
        sizes.fold(0, |sum: usize, &bytes| sum.saturating_add(shared.settings.need(bytes)))
    }

    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn serve(&self, pool: &ShardPool, turn: Turn) -> Result<Vec<ShardBuf>, NoBlock> {
        let shared = pool.shared();
        self.check(shared)?;
        let (mut bufs, mut found) = (Vec::new(), Vec::new());
        let room = bufs.try_reserve_exact(self.0.len()).and(found.try_reserve_exact(self.0.len()));
        room.map_err(|_refused| AcquireError::OutOfMemory { requested: self.bytes() })?;
        if let Err(refused) = self.find(shared, turn, &mut found) {
            // SAFETY: just found, of this pool, which the handle keeps.
            unsafe { release::give_back(shared, turn, found.into_iter().map(|found| found.block)) };
            return Err(refused);
        }
        let mut found = found.into_iter();
        for &bytes in self.0 {
            let block = if bytes > 0 { found.next() } else { None };
            bufs.push(match block {
                Some(block) => pool.deliver(block, bytes),
                None => pool.acquire(0)?,
            });
        }
        Ok(bufs)
    }
}

impl Future for AcquireEach<'_> {
    type Output = Result<Vec<ShardBuf>, AcquireError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting.poll(cx)
    }
}

impl fmt::Debug for AcquireEach<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireEach").field("sizes", &self.waiting.request.0).finish_non_exhaustive()
    }
}
