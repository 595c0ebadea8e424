//! Cooperative scheduling: a task that never has to wait lets other tasks run now and then.

use core::cell::Cell;
use core::task::{Context, Poll};

/// Operations that the tasks of a thread complete between two turns for others, as in tokio.
const BUDGET: u32 = 128;

std::thread_local! {
    /// Operations that were completed on this thread since a task last let others run.
    static COMPLETED: Cell<u32> = const { Cell::new(0) };
}

/// The part that a future takes in cooperative scheduling, in any executor.
///
/// A task whose peer is always quick enough would never return to its executor: no other task of
/// the thread would run, and no timer. So after 128 completed operations on a thread, the next poll
/// returns `Pending` and has woken its task. A future that returned `Pending` for this reason
/// proceeds at its next poll, whatever other futures did in between.
///
/// Cost: a few instructions, and one more poll in 128 operations.
///
/// ```
/// use core::task::{Context, Poll, Waker, ready};
///
/// use bufcore::strategy::Coop;
///
/// fn poll_next(items: &mut Vec<u8>, coop: &mut Coop, cx: &Context<'_>) -> Poll<Option<u8>> {
///     ready!(coop.poll_proceed(cx));
///     let item = items.pop(); // where there may be none yet, this is pending, and not counted
///     coop.made_progress();
///     Poll::Ready(item)
/// }
///
/// let cx = Context::from_waker(Waker::noop());
/// let (mut items, mut coop) = (vec![7; 1000], Coop::default());
/// let polls = || poll_next(&mut items, &mut coop, &cx);
/// let pending = std::iter::repeat_with(polls).take(1000).filter(Poll::is_pending).count();
/// assert_eq!(pending, 1000 / 129);
/// ```
#[derive(Debug, Default)]
pub struct Coop {
    has_yielded: bool,
}

impl Coop {
    /// Returns whether the future may proceed. If not, its task was woken, and the future returns
    /// `Poll::Pending` with nothing else done.
    #[inline]
    pub fn poll_proceed(&mut self, cx: &Context<'_>) -> Poll<()> {
        // Models take the same turns whatever an earlier one did.
        if COMPLETED.get() < BUDGET || self.has_yielded || cfg!(any(loom, shuttle)) {
            return Poll::Ready(());
        }
        COMPLETED.set(0);
        self.has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Counts an operation that was completed.
    #[inline]
    pub fn made_progress(&mut self) {
        self.has_yielded = false;
        COMPLETED.set(COMPLETED.get().saturating_add(1));
    }
}
