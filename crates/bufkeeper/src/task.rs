//! The keeper as a task.

use core::convert::Infallible;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::time::Instant;

use super::keeper::Keeper;

impl Keeper {
    /// Trims the pools in an endless loop, as a task of any executor. Dropping the future stops it.
    ///
    /// `sleep` returns a future that completes after a duration, as `tokio::time::sleep` does:
    ///
    /// ```text
    /// tokio::spawn(Keeper::new().watch(&pool).run(tokio::time::sleep));
    /// ```
    ///
    /// A pass runs within one poll. It takes as long as [`trim_idle`](crate::Trim::trim_idle), and
    /// reads some small files of the kernel ([`Pressure`](crate::Pressure)).
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use bufkeeper::Keeper;
    ///
    /// // A timer that is never ready.
    /// let mut task = pin!(Keeper::new().run(|_| std::future::pending::<()>()));
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(task.as_mut().poll(&mut cx).is_pending());
    /// ```
    pub async fn run<S, F>(mut self, mut sleep: S) -> Infallible
    where
        S: FnMut(Duration) -> F,
        F: Future,
    {
        loop {
            let now = Instant::now();
            let next = self.pass(now, true);
            let mut timer = pin!(sleep(next.saturating_duration_since(now)));
            let calls = &self.calls;
            poll_fn(|cx| {
                if calls.is_called_or_wakes(cx) {
                    return Poll::Ready(());
                }
                timer.as_mut().poll(cx).map(drop)
            })
            .await;
        }
    }
}
