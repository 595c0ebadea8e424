//! T24: futures that go from one executor to another.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::tasks::{block_on, counting, poll};

/// Nobody waits so long unless a wake-up is lost.
const LONG: Duration = Duration::from_secs(60);
/// Executors that a future goes through while what it waits for comes at any moment.
const EXECUTORS: usize = 4;
/// How often it does so.
const ROUNDS: usize = if cfg!(debug_assertions) { 200 } else { 2_000 };

/// A future that waits, and what it waits for.
pub struct Waiting {
    /// Pending until the event.
    pub future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Makes the future ready, and wakes it.
    pub event: Box<dyn FnOnce() + Send>,
}

/// Checks that a future which was polled by one executor and is polled by another wakes that one,
/// and keeps nothing of the first. Wherever it is when the event comes, the executor that has it
/// then is woken. `make` makes one that waits.
pub fn t24_moved(make: impl Fn() -> Waiting) {
    wakes_the_last(&make);
    is_woken_before_it_goes(&make);
    for round in 0..ROUNDS {
        goes_on_meanwhile(make(), round);
    }
}

fn wakes_the_last(make: &impl Fn() -> Waiting) {
    let Waiting { mut future, event } = make();
    let ((first, waker), (second, other)) = (counting(), counting());
    assert!(poll(future.as_mut(), &waker).is_pending(), "there is nothing yet");
    assert!(poll(future.as_mut(), &other).is_pending(), "there is nothing yet");
    drop(waker);
    assert_eq!(Arc::strong_count(&first), 1, "the first executor's waker is kept");
    let before = (first.count(), second.count());
    event();
    let wakes = (first.count() - before.0, second.count() - before.1);
    assert!(wakes.0 == 0 && wakes.1 > 0, "wakes of the first executor and the second: {wakes:?}");
    assert_eq!(block_on(future, LONG), Some(()));
    drop(other);
    assert_eq!(Arc::strong_count(&second), 1, "the second executor's waker is kept");
}

fn is_woken_before_it_goes(make: &impl Fn() -> Waiting) {
    let Waiting { mut future, event } = make();
    let (first, waker) = counting();
    assert!(poll(future.as_mut(), &waker).is_pending(), "there is nothing yet");
    let before = first.count();
    event();
    assert!(first.count() > before, "the executor that has the future is woken");
    assert_eq!(block_on(future, LONG), Some(()), "by the second executor");
}

/// Lets each executor poll once and hand the future on; the last one runs it.
fn goes_on_meanwhile(waiting: Waiting, round: usize) {
    let Waiting { mut future, event } = waiting;
    let begins = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            begins.wait();
            for _ in 0..round % 50 * 20 {
                std::hint::spin_loop();
            }
            event();
        });
        begins.wait();
        let wakers: Vec<_> = (0..EXECUTORS).map(|_| counting().1).collect();
        // One thread stands for all of them: what differs is whom the future wakes.
        if wakers.iter().any(|waker| poll(future.as_mut(), waker).is_ready()) {
            return;
        }
        assert_eq!(block_on(future, LONG), Some(()), "round {round}: the last executor was not woken");
    });
}
