//! How an end waits: it looks for a while, then sleeps until the other end wakes it.

use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::time::Instant;

use bufkit::Waiter;
use bufkit::sync::Ordering;

use super::Waking;
use super::header::SLEEPS;
use super::wait_error::WaitError;
use crate::channel::end::{Access, ChannelState, End, Lending};
use crate::parking;

/// How often an end that waits looks before it sleeps: less than a sleep and its end take.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };
/// As the part of the capacity for which an end that had to wait continues to wait while it comes.
const ENOUGH: usize = 4;
/// How long it lets the other one work in between: a look takes the position from the other
/// processor's cache, and slows it down.
const PAUSES: u32 = 4;
/// The longest that it does so: about a microsecond.
const MOST_PAUSES: u32 = 64;

impl<const PRODUCER: bool, A: Access> End<PRODUCER, Waking<A>> {
    /// Says whom to wake when the other end moves or closes. The caller looks once more afterwards.
    fn arm(&self, sleeper: Waiter) {
        self.channel.core.transport.arm(PRODUCER, sleeper);
        // ORDER: Release pairs with the Acquire in `wake`.
        self.channel.half(PRODUCER).state.0.fetch_or(SLEEPS, Ordering::Release);
        self.channel.core.sleepers_fence();
    }

    /// Takes back what `arm` said.
    fn disarm(&self) {
        // ORDER: Relaxed: a late wake finds nobody, or wakes for nothing.
        self.channel.half(PRODUCER).state.0.fetch_and(!SLEEPS, Ordering::Relaxed);
        self.channel.core.transport.disarm(PRODUCER);
    }

    /// Looks whether `n` bytes are this end's, or never will be.
    fn check(&mut self, n: usize) -> Option<Result<(), WaitError>> {
        // Before the look at the position, which is then the last one.
        let is_closed = self.channel.is_closed(PRODUCER, false);
        if self.has(n) && !(PRODUCER && is_closed) {
            return Some(Ok(()));
        }
        // ORDER: Relaxed: as where it is set. Models have no other processes.
        if !cfg!(any(loom, shuttle)) && self.channel.is_corrupt.load(Ordering::Relaxed) {
            return Some(Err(WaitError::Corrupt));
        }
        if n > self.capacity {
            return Some(Err(WaitError::TooLong { requested: n, capacity: self.capacity }));
        }
        is_closed.then_some(Err(WaitError::Closed { requested: n, available: self.cached_available }))
    }

    /// Waits for `n` bytes, as a task or as a thread that parks when this is pending.
    fn poll(&mut self, n: usize, sleeper: impl FnOnce() -> Waiter) -> Poll<Result<(), WaitError>> {
        if let Some(result) = self.check(n) {
            return Poll::Ready(result);
        }
        self.arm(sleeper());
        match self.check(n) {
            Some(result) => {
                self.disarm();
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }

    /// Looks for `n` bytes for a while. Once they are there, it continues while each look finds
    /// more, up to a part of the ring: two ends that work at the same speed would otherwise meet at
    /// each message, and pass the cache lines that they share to and fro. It then looks less and
    /// less often, because each look takes the position away from the end that moves it.
    fn look_for(&mut self, n: usize) -> Option<Result<(), WaitError>> {
        if self.has(n) {
            return self.check(n);
        }
        let enough = n.max(self.capacity / ENOUGH);
        let mut before = 0;
        let mut pauses = PAUSES;
        for _ in 0..LOOKS {
            let available = self.look();
            if available >= n {
                if available >= enough || available == before {
                    break;
                }
                pauses = MOST_PAUSES.min(2 * pauses);
            }
            before = available;
            for _ in 0..pauses {
                core::hint::spin_loop();
            }
        }
        self.check(n)
    }

    /// Asks the system whether the other end is still there.
    fn look_for_death(&mut self) {
        self.channel.is_dead = self.channel.core.transport.is_dead(&self.channel.half(!PRODUCER).state.0);
    }

    /// Blocks until `n` bytes are this end's, or until the moment `until`, if there is one.
    pub(super) fn wait_until(&mut self, n: usize, until: Option<Instant>) -> Result<(), WaitError> {
        if self.channel.is_dead {
            // It may have come back.
            self.look_for_death();
        }
        if let Some(result) = self.look_for(n) {
            return result;
        }
        loop {
            if let Poll::Ready(result) = self.poll(n, parking::sleeper) {
                return result;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.disarm();
                return Err(WaitError::TimedOut { requested: n, available: self.cached_available });
            }
            self.channel.core.transport.sleep(&self.channel.half(PRODUCER).state.0, left);
            self.look_for_death();
        }
    }

    /// Blocks until `n` bytes can be read, or until there is room for `n` bytes.
    ///
    /// It spins for some microseconds, then sleeps. If it had to wait, it continues to wait while
    /// more bytes arrive, up to a quarter of the capacity. It notices a killed peer process after a
    /// tenth of a second.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the other end was dropped and, for a consumer, fewer bytes are
    /// left; [`WaitError::TooLong`] for more than the capacity; [`WaitError::Corrupt`] if another
    /// process wrote an invalid position.
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let writer = std::thread::spawn(move || producer.write_all(b"\x05hello"));
    /// consumer.wait(1)?; // the length
    /// let length = usize::from(consumer.peek()[0]);
    /// consumer.wait(1 + length)?; // all of the record
    /// assert_eq!(&consumer.peek()[1..], b"hello");
    /// # writer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A producer waits until the other thread has freed room:
    ///
    /// ```
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let rounds = 10 * producer.capacity() / 1000;
    /// let reader = std::thread::spawn(move || {
    ///     let mut sum = 0;
    ///     while consumer.wait(1).is_ok() {
    ///         let filled = consumer.peek().len(); // more may come at any moment
    ///         consumer.consume(filled);
    ///         sum += filled;
    ///     }
    ///     sum
    /// });
    /// for _ in 0..rounds {
    ///     producer.wait(1000)?;
    ///     producer.put(&[7; 1000])?;
    /// }
    /// drop(producer);
    /// assert_eq!(reader.join().unwrap(), rounds * 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn wait(&mut self, n: usize) -> Result<(), WaitError> {
        // A producer that is known to have room looks whether the consumer is gone.
        if n <= self.cached_available && !(PRODUCER && self.channel.is_closed(PRODUCER, false)) {
            return Ok(());
        }
        self.wait_until(n, None)
    }

    /// Waits as [`wait`](Self::wait) does, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait), and [`WaitError::TimedOut`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bufmirror::WaitError;
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"he")?;
    /// let late = consumer.wait_timeout(5, Duration::from_millis(10)).unwrap_err();
    /// assert_eq!(late, WaitError::TimedOut { requested: 5, available: 2 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_timeout(&mut self, n: usize, timeout: Duration) -> Result<(), WaitError> {
        self.wait_until(n, Instant::now().checked_add(timeout))
    }
}

impl<const PRODUCER: bool> End<PRODUCER, Waking<Lending>> {
    /// Waits as [`wait`](Self::wait) does, as a future for any executor. Dropping it loses nothing.
    ///
    /// After 128 completed operations of tasks on a thread, the next poll of each future returns
    /// `Pending` and wakes its own task. This ends when one of them is polled again, or after 32
    /// such polls. A task with a fast peer thus lets other tasks run, also in a `select!`. With the
    /// feature `tokio` operations count against the budget of tokio's tasks as well.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait), and [`WaitError::NoTasks`] for an end between processes.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let reader = async move {
    ///     consumer.wait_async(5).await?; // other tasks can run
    ///     Ok::<_, bufmirror::WaitError>(consumer.peek().to_vec())
    /// };
    /// let writer = async move { producer.put(b"hello") };
    /// let (read, written) = tokio::join!(reader, writer);
    /// written?;
    /// assert_eq!(read?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn wait_async(&mut self, n: usize) -> Result<(), WaitError> {
        poll_fn(|cx| self.poll_wait(cx, n)).await
    }

    /// Waits as [`wait`](Self::wait) does, for tasks: the waker of the last call is woken when the
    /// state may have changed. It lets other tasks run as [`wait_async`](Self::wait_async) does.
    ///
    /// # Errors
    ///
    /// As [`wait_async`](Self::wait_async).
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let cx = Context::from_waker(Waker::noop()); // in a future, the context of its `poll`
    /// assert!(consumer.poll_wait(&cx, 5).is_pending());
    /// producer.put(b"hello")?; // wakes the waker
    /// assert_eq!(consumer.poll_wait(&cx, 5), Poll::Ready(Ok(())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_wait(&mut self, cx: &Context<'_>, n: usize) -> Poll<Result<(), WaitError>> {
        if !self.channel.core.transport.is_in_process() {
            return Poll::Ready(self.check(n).unwrap_or(Err(WaitError::NoTasks)));
        }
        ready!(self.channel.coop.poll_proceed(cx));
        let polled = self.poll(n, || Waiter::task(cx.waker().clone()));
        if polled.is_ready() {
            self.channel.coop.made_progress();
        }
        polled
    }
}
