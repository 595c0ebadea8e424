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
use bufcore::{AcquireError, Buf, BufferPool, HeapPool};

use crate::lease::SlotLease;
use crate::pool::SlotPool;
use crate::table::NONE;

/// The future of [`SlotPool::acquire_async`]. Dropping it gives the request up; nothing is lost by
/// that.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use bufslot::{Reject, SlotPool};
///
/// let mut pool = SlotPool::builder().capacity(100_000).slots(8).build_with(Reject)?;
/// let held = pool.acquire(90_000)?;
/// {
///     let mut large = pin!(pool.acquire_async(80_000));
///     let mut cx = Context::from_waker(Waker::noop());
///     assert!(large.as_mut().poll(&mut cx).is_pending());
/// }
/// assert!(pool.acquire(1500).is_ok()); // it waits no more
/// # drop(held);
/// # Ok::<(), bufslot::Error>(())
/// ```
///
/// # Executors
///
/// Any executor may poll it at any time, whether it was woken or not. A future that is forgotten
/// (`mem::forget`) costs one wake in vain.
///
/// Buffers that came from [`acquire_async`](SlotPool::acquire_async) or
/// [`acquire_timeout`](SlotPool::acquire_timeout) wake it without exception. A buffer from
/// [`acquire`](SlotPool::acquire) is released by a plain store. If that release had looked at its
/// slot, and had not stored, when the future began to wait, it wakes nobody. So the future polls
/// itself three times more when it has begun to wait beside such buffers. The scheduler may stop
/// the releasing thread between the two instructions for longer than that. Then the next release or
/// poll finds the memory. If that was the last buffer, and nobody polls the future, it sleeps for
/// ever. A program that cannot have that takes its buffers by `acquire_async`, or polls again after
/// some time. A thread in `acquire_timeout` looks again after a millisecond, and then after pauses
/// that double, up to half a second.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a, F: BufferPool = HeapPool>(WaitingRequest<Turn<'a, F>>);

/// A request's access to its pool.
struct Turn<'a, F: BufferPool> {
    pool: &'a mut SlotPool<F>,
    /// Who asked for the buffer. The code that polls a future is no caller of the user's.
    #[cfg(feature = "track")]
    caller: &'static Location<'static>,
}

impl<'a, F: BufferPool> Turn<'a, F> {
    #[cfg_attr(feature = "track", track_caller)]
    fn new(pool: &'a mut SlotPool<F>) -> Self {
        Self {
            pool,
            #[cfg(feature = "track")]
            caller: Location::caller(),
        }
    }

    /// Returns the buffer, and makes its release see whether somebody waits.
    fn watched(&self, buf: Buf<SlotLease<F::Lease>>) -> Buf<SlotLease<F::Lease>> {
        if let Some(slot) = buf.lease().slot() {
            slot.watch();
        }
        #[cfg(feature = "track")]
        let buf = self.pool.tracker.attach_at(buf, self.caller);
        buf
    }
}

impl<F: BufferPool> WaitingPool for Turn<'_, F> {
    type Lease = SlotLease<F::Lease>;

    fn request(&mut self, bytes: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        self.pool.acquire(bytes).map(|buf| self.watched(buf))
    }

    fn request_again(&mut self, bytes: usize) -> Option<Buf<Self::Lease>> {
        // Before anything changes: it is the user's code.
        let elsewhere = self.pool.out_elsewhere();
        // No bounded search first: what it finds, this finds too.
        self.pool.return_gap();
        let carved = self.pool.go_round(bytes).ok()?;
        let buf = self.pool.hand_out(carved, bytes, bytes, elsewhere);
        Some(self.watched(buf))
    }

    fn can_wait_for(&self, bytes: usize) -> bool {
        bytes <= self.pool.capacity
    }

    fn place(&self) -> &WaitPlace {
        self.pool.table.waiter()
    }

    fn tell(&mut self, bytes: usize, is_first: bool) -> Told {
        // A request that waits has the region to itself, and all that is live has a lease.
        self.pool.unpark_all();
        let mut teller = self.pool.teller;
        let any = self.pool.lacks_a_slot_alone(bytes);
        let told = teller.tell(&Row { pool: self.pool, bytes, any }, is_first);
        self.pool.teller = teller;
        told
    }
}

/// The slots in the list, for a request that waits.
struct Row<'a, F: BufferPool> {
    pool: &'a SlotPool<F>,
    bytes: usize,
    /// Whether any slot will do.
    any: bool,
}

impl<F: BufferPool> WaitingRow for Row<'_, F> {
    type Place = u32;

    fn first(&self) -> Option<u32> {
        self.behind(self.pool.sentinel())
    }

    fn behind(&self, slot: u32) -> Option<u32> {
        let next = self.pool.table.slots().next(slot);
        (next != self.pool.sentinel()).then_some(next)
    }

    fn has_room(&self, first: u32, last: u32) -> bool {
        let slots = self.pool.table.slots();
        self.any || self.bytes <= self.pool.room_between(slots.prev(first), slots.next(last))
    }

    fn look(&self, slot: u32) -> Holder {
        if slot == self.pool.frame { Holder::Pool } else { self.pool.table.look(slot) }
    }

    fn tell(&self, slot: u32) -> Holder {
        self.pool.table.tell(slot)
    }
}

impl<F: BufferPool> SlotPool<F> {
    /// Returns the largest buffer that there is room for behind one slot and in front of another,
    /// if all slots in between are free.
    fn room_between(&self, before: u32, behind: u32) -> usize {
        let slots = self.table.slots();
        slots.start(behind).saturating_sub(self.align(slots.end(before)))
    }

    /// Returns whether a gap has room for `bytes` bytes, and only a slot for them is missing.
    fn lacks_a_slot_alone(&self, bytes: usize) -> bool {
        if self.free != NONE {
            return false;
        }
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let mut slot = sentinel;
        loop {
            let behind = slots.next(slot);
            if bytes <= self.room_between(slot, behind) {
                return true;
            }
            if behind == sentinel {
                return false;
            }
            slot = behind;
        }
    }
}

impl<F: BufferPool> SlotPool<F> {
    /// Acquires as [`acquire`](Self::acquire) does, but blocks the thread for up to `timeout` until
    /// buffers come back, where the region has no room.
    ///
    /// A request that waits has the pool for itself. Threads that share a pool share it in a mutex,
    /// whose order is the order of their requests. So a small request does not overtake a large one
    /// that waits.
    ///
    /// The fallback is asked once, before the request waits. Then the request waits for the region
    /// alone.
    ///
    /// Cost: a release of a buffer that was acquired in this way takes a locked instruction in
    /// place of a plain store. A request that waits tells one buffer of each run of neighbours that
    /// together have room for it, drawn at random. The releases of those take two or three locked
    /// instructions, free a few words, and wake the request, which looks at every slot then. So a
    /// request for the memory of `n` buffers is woken about `log2(n)` times, in whatever order they
    /// come back. One for the memory of two neighbours is woken by half of the releases at worst,
    /// which is a cost of `n` squared if no two neighbours come back.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). It fails at once where releases to the region cannot help.
    /// That is so for a request that is larger than the region, and when the open frame alone is in
    /// its way. Otherwise it fails when the time is over, with [`AcquireError::Exhausted`], or with
    /// [`AcquireError::OutOfMemory`] if the fallback had no memory when it was asked. It also
    /// returns `OutOfMemory` when the allocator has no memory for the waiting itself.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufslot::{AcquireError, Reject, SlotPool};
    ///
    /// let mut pool = SlotPool::builder().capacity(100_000).slots(8).build_with(Reject)?;
    /// let large = pool.acquire(90_000)?;
    /// let refused = pool.acquire_timeout(80_000, Duration::from_millis(1));
    /// assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    ///
    /// let other = std::thread::spawn(move || drop(large));
    /// assert!(pool.acquire_timeout(80_000, Duration::from_secs(10)).is_ok());
    /// # other.join().unwrap();
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_timeout(
        &mut self,
        bytes: usize,
        timeout: Duration,
    ) -> Result<Buf<SlotLease<F::Lease>>, AcquireError> {
        WaitingRequest::new(Turn::new(self), bytes).block(timeout)
    }

    /// Returns a future that acquires as `acquire_timeout` does, without an end. It runs on any
    /// executor, since it needs only a waker.
    ///
    /// Tasks share a pool in a mutex for tasks, such as tokio's, which is locked while the request
    /// waits: `pool.lock().await.acquire_async(bytes).await`. Buffers are released without the
    /// mutex.
    ///
    /// Dropping the future takes the request back. A buffer that was not delivered is not lost.
    ///
    /// # Errors
    ///
    /// As `acquire_timeout`, but what `acquire` says only where releases to the region cannot help.
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// use bufslot::{Reject, SlotPool};
    ///
    /// let mut pool = SlotPool::builder().capacity(100_000).slots(8).build_with(Reject)?;
    /// let large = pool.acquire(90_000)?;
    /// let mut request = pin!(pool.acquire_async(80_000)); // or `pool.acquire_async(80_000).await`
    /// assert!(request.as_mut().poll(&mut cx).is_pending());
    /// drop(large);
    /// assert!(matches!(request.poll(&mut cx), Poll::Ready(Ok(_))));
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_async(&mut self, bytes: usize) -> Acquire<'_, F> {
        Acquire(WaitingRequest::new(Turn::new(self), bytes))
    }
}

impl<F: BufferPool> Future for Acquire<'_, F> {
    type Output = Result<Buf<SlotLease<F::Lease>>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<F: BufferPool> fmt::Debug for Acquire<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("bytes", &self.0.bytes()).finish_non_exhaustive()
    }
}
