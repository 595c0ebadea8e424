//! Cooperative scheduling: a task that never has to wait lets other tasks run now and then.

mod runtime;

use core::cell::Cell;
use core::task::{Context, Poll};

/// Operations that the tasks of a thread complete between two turns for others, as in tokio.
const BUDGET: u32 = 128;
/// Polls that are passed over at most before the budget is renewed. A `select!` of more branches
/// than that may go on without a turn for others.
const MOST_PASSES: u32 = 32;

std::thread_local! {
    /// Operations that were completed on this thread since its budget was renewed. From the budget
    /// on, passes are counted as well.
    static COMPLETED: Cell<u32> = const { Cell::new(0) };
}

/// A future's part in cooperative scheduling, in any executor.
///
/// A task whose peer is always ready would never yield to its executor: no other task of the
/// thread, and no timer, would run. After 128 completed operations on a thread, its futures
/// therefore yield once: a poll returns `Pending` after it woke its own task. A `select!` of
/// several futures yields as a whole.
///
/// A future that yielded proceeds at its next poll, whatever other futures did in between. Its
/// executor has run in between, so this renews the budget of the thread. So do 32 yields, for
/// callers that poll each future only once.
///
/// With the feature `tokio`, operations in a tokio runtime also count against tokio's budget of the
/// task, and an exhausted tokio budget makes futures yield too. The runtime wakes such a task after
/// it polled timers and sockets, so an executor nested in that task that blocks it may wait
/// forever, as with tokio's own futures.
///
/// Cost: a few instructions, and one additional poll in 128 operations, or up to 32 if many futures
/// alternate.
///
/// ```
/// use core::task::{Context, Poll, Waker, ready};
///
/// use bufkit::Coop;
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
    /// Returns whether the future may proceed. If not, its task was woken, and the future must
    /// return `Poll::Pending` at once.
    #[inline]
    pub fn poll_proceed(&mut self, cx: &Context<'_>) -> Poll<()> {
        if runtime::is_spent() {
            // The runtime renews its budget, and this one with it.
            COMPLETED.set(0);
            runtime::wake_later(cx);
            return Poll::Pending;
        }
        let completed = COMPLETED.get();
        // Models take the same turns whatever an earlier one did.
        if completed >= BUDGET && !cfg!(any(loom, shuttle)) {
            if !self.has_yielded && completed < BUDGET + MOST_PASSES {
                // The budget stays spent: other futures of this poll do not proceed, either.
                COMPLETED.set(completed + 1);
                self.has_yielded = true;
                runtime::wake_later(cx);
                return Poll::Pending;
            }
            COMPLETED.set(0);
        }
        self.has_yielded = false;
        Poll::Ready(())
    }

    /// Counts a completed operation.
    #[inline]
    pub fn made_progress(&mut self) {
        COMPLETED.set(COMPLETED.get().saturating_add(1));
        runtime::made_progress();
    }
}
