//! The budget that a runtime gives a task for each of its polls: tokio's, or none.

use core::task::Context;

#[cfg(feature = "tokio")]
use {
    core::pin::pin,
    core::task::{Poll, Waker},
    tokio::task::{coop, yield_now},
};

/// Returns whether the task has to return to its runtime.
#[inline]
pub(super) fn is_spent() -> bool {
    #[cfg(feature = "tokio")]
    return !coop::has_budget_remaining();
    #[cfg(not(feature = "tokio"))]
    return false;
}

/// Counts a completed operation.
#[inline]
pub(super) fn made_progress() {
    // The waker is for a spent budget, and the caller has seen that it is not.
    #[cfg(feature = "tokio")]
    if let Poll::Ready(spent) = coop::poll_proceed(&mut Context::from_waker(Waker::noop())) {
        spent.made_progress();
    }
}

/// Wakes the task: in a runtime of tokio's after the drivers had their turn, else at once.
pub(super) fn wake_later(cx: &Context<'_>) {
    #[cfg(feature = "tokio")]
    let _ = pin!(yield_now()).poll(&mut Context::from_waker(cx.waker()));
    #[cfg(not(feature = "tokio"))]
    cx.waker().wake_by_ref();
}
