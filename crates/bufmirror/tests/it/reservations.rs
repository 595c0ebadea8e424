//! T24: a task for which others make way, since it has waited for long, and what becomes of them
//! when it is woken and not polled.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufmirror::messages::{self, Receiver, SendError, Sender};
use testkit::tasks::{Counting, counting};

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(10);
/// Until a thread sleeps that has begun to wait, and until others make way for one that waits, or
/// do so no more.
const A_WHILE: Duration = Duration::from_millis(100);
/// Until a thread that was woken has sent something. Much less than others make way for.
const A_MOMENT: Duration = Duration::from_millis(10);
/// A message of which 8 fill an eighth of a queue of 4096 bytes.
const SMALL: [u8; 56] = [1; 56];

/// A task that sends, and how often it was woken.
struct Task<'a> {
    future: Pin<Box<dyn Future<Output = Result<u64, SendError>> + 'a>>,
    waker: Waker,
    wakes: Arc<Counting>,
}

impl<'a> Task<'a> {
    fn new(sender: &'a Sender, len: usize) -> Self {
        let (wakes, waker) = counting();
        Self { future: Box::pin(async move { sender.send_async(&vec![7; len]).await }), waker, wakes }
    }

    /// Polls a task that has to wait.
    fn waiting(sender: &'a Sender, len: usize) -> Self {
        let mut task = Self::new(sender, len);
        assert!(task.poll().is_pending());
        task
    }

    fn poll(&mut self) -> Poll<Result<u64, SendError>> {
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

/// A queue that is full of small messages.
fn full() -> (Sender, Receiver) {
    let (sender, receiver) = messages::channel(4096).expect("a small ring can be mapped");
    while sender.try_send(&SMALL).is_ok() {}
    (sender, receiver)
}

/// The message that takes so many eighths of the queue.
fn eighths(sender: &Sender, count: usize) -> usize {
    sender.capacity() / 8 * count - 8
}

/// Receives so many eighths of a queue of small messages.
fn receive(receiver: &Receiver, count: usize) {
    let messages = (receiver.max_message() + 8) / 8 * count / (8 + SMALL.len());
    (0..messages).for_each(|_| assert!(receiver.try_recv().is_ok(), "the queue is not empty"));
}

/// Receives until the task is woken.
fn receive_for(task: &Task<'_>, receiver: &Receiver) {
    let began = Instant::now();
    while task.wakes.count() == 0 {
        drop(receiver.try_recv());
        assert!(began.elapsed() < LONG, "it is not woken");
    }
}

/// Sends from a thread, which has to be woken.
fn send(sender: &Sender, len: usize) {
    let began = Instant::now();
    let sent = sender.send_timeout(&vec![2; len], LONG);
    assert!(sent.is_ok() && began.elapsed() < LONG / 2, "{sent:?} after {:?}", began.elapsed());
}

/// Threads that sleep before others make way for a task of so many eighths, which is woken and not
/// polled. Then `more` eighths become free, and all is quiet. There is room for the threads.
fn beside_one_that_is_not_polled(count: usize, threads: &[usize], more: usize) {
    let (sender, receiver) = full();
    let task = Task::waiting(&sender, eighths(&sender, count));
    thread::scope(|scope| {
        for &len in threads {
            let sender = &sender;
            scope.spawn(move || send(sender, len));
        }
        thread::sleep(A_WHILE);
        receive_for(&task, &receiver);
        receive(&receiver, more);
    });
}

#[test]
fn t24_threads_behind_a_task_that_is_not_polled() {
    // Besides what is kept there is room for none, for some, and for none although all is free.
    beside_one_that_is_not_polled(6, &[56, 56], 0);
    beside_one_that_is_not_polled(6, &[56, 500, 56, 500], 1);
    beside_one_that_is_not_polled(8, &[56, 1000], 0);
}

#[test]
fn t24_a_thread_that_needs_more_behind_a_task_that_is_not_polled() {
    let (sender, _) = full();
    beside_one_that_is_not_polled(4, &[eighths(&sender, 6)], 3);
}

/// The thread that sees to it that others are not held up for ever gives up before they are not.
#[test]
fn t24_threads_behind_one_that_gives_up() {
    let (sender, receiver) = full();
    let task = Task::waiting(&sender, eighths(&sender, 6));
    thread::scope(|scope| {
        let first = scope.spawn(|| sender.send_timeout(&SMALL, A_WHILE + 2 * A_MOMENT));
        thread::sleep(A_MOMENT);
        scope.spawn(|| send(&sender, 56));
        thread::sleep(A_WHILE - A_MOMENT);
        receive_for(&task, &receiver);
        let _ = first.join().expect("it does not panic");
    });
}

/// One that sees to it for one task does for the next.
#[test]
fn t24_threads_behind_several_tasks_that_are_not_polled() {
    let (sender, receiver) = full();
    let len = eighths(&sender, 6);
    let mut tasks = [0; 3].map(|_| Task::waiting(&sender, len));
    thread::scope(|scope| {
        scope.spawn(|| send(&sender, 1000));
        scope.spawn(|| send(&sender, 56));
        thread::sleep(A_WHILE);
        receive(&receiver, 6);
        // Polled too late: the place is another's, and it is the first again.
        thread::sleep(4 * A_WHILE);
        let _ = tasks[0].poll();
        while receiver.try_recv().is_ok() {}
    });
}

/// Each time that the task is woken, somebody sees to it.
#[test]
fn t24_a_thread_behind_a_task_that_is_woken_twice() {
    let (sender, receiver) = full();
    let mut before = Task::waiting(&sender, eighths(&sender, 1));
    let mut task = Task::waiting(&sender, eighths(&sender, 6));
    thread::scope(|scope| {
        thread::sleep(A_WHILE);
        receive(&receiver, 1);
        assert_eq!(before.wakes.count(), 1);
        let len = eighths(&sender, 2);
        let thread = scope.spawn({
            let sender = &sender;
            move || send(sender, len)
        });
        thread::sleep(A_WHILE);
        receive(&receiver, 5);
        assert_eq!(task.wakes.count(), 1);
        assert!(before.poll().is_ready(), "it was woken");
        if task.poll().is_pending() {
            // Longer than the thread sleeps for the sake of the first time.
            thread::sleep(2 * A_WHILE);
            receive(&receiver, 1);
            assert!(task.wakes.count() == 2 || thread.is_finished());
        }
    });
}

/// A thread that sleeps does not go before a task that is polled soon, as it would each time.
#[test]
fn t24_a_task_is_not_overtaken_by_those_that_sleep() {
    for count in [6, 8] {
        // In one round or another, this thread or that one has to wait for a processor for too long.
        let (mut sent, mut overtaken) = (0_i32, 0);
        while (sent - overtaken).abs() < 3 && sent + overtaken < 20 {
            let (sender, receiver) = full();
            let mut task = Task::waiting(&sender, eighths(&sender, count));
            let is_sent = thread::scope(|scope| {
                let small = scope.spawn(|| sender.send_timeout(&SMALL, LONG));
                thread::sleep(A_WHILE);
                receive(&receiver, count);
                thread::sleep(A_MOMENT);
                let is_sent = task.poll().is_ready();
                receiver.close();
                let _ = small.join().expect("it does not panic");
                is_sent
            });
            *if is_sent { &mut sent } else { &mut overtaken } += 1;
        }
        assert!(
            sent > overtaken,
            "overtaken by a thread {overtaken} times, and {sent} times not, with room for {count} eighths"
        );
    }
}

/// Tasks have no clock. One that needs what another was woken for is woken when all is free.
#[test]
fn t24_a_task_behind_one_that_is_not_polled_when_all_is_free() {
    let (sender, receiver) = full();
    let task = Task::waiting(&sender, eighths(&sender, 5));
    let mut other = Task::waiting(&sender, eighths(&sender, 4));
    thread::sleep(A_WHILE);
    receive(&receiver, 5);
    assert_eq!(task.wakes.count(), 1);
    receive(&receiver, 3);
    assert_eq!(other.wakes.count(), 1, "all is free");
    assert!(other.poll().is_ready());
}

/// Or when somebody comes who sees that others make way for too long.
#[test]
fn t24_a_task_behind_one_that_is_not_polled_when_another_comes() {
    let (sender, receiver) = full();
    let task = Task::waiting(&sender, eighths(&sender, 5));
    let mut other = Task::waiting(&sender, eighths(&sender, 4));
    thread::sleep(A_WHILE);
    receive(&receiver, 6);
    assert_eq!(task.wakes.count(), 1);
    thread::sleep(A_WHILE);
    assert!(sender.try_send(&SMALL).is_ok(), "others make way no more");
    assert_eq!(other.wakes.count(), 1, "there is room");
    assert!(other.poll().is_ready());
}

/// Or when it is polled, for whatever reason.
#[test]
fn t24_a_task_behind_one_that_is_not_polled_when_it_is_polled() {
    let (sender, receiver) = full();
    let _task = Task::waiting(&sender, eighths(&sender, 5));
    let mut other = Task::waiting(&sender, eighths(&sender, 4));
    thread::sleep(A_WHILE);
    receive(&receiver, 6);
    thread::sleep(A_WHILE);
    assert!(other.poll().is_ready(), "there is room, and others make way no more");
}

#[test]
fn t24_a_task_that_is_polled_and_was_not_woken_receives() {
    let (sender, receiver) = messages::channel(4096).expect("a small ring can be mapped");
    let mut tasks = [0; 2].map(|_| Box::pin(receiver.recv_async()));
    let (wakes, waker) = counting();
    let context = &mut Context::from_waker(&waker);
    assert!(tasks.iter_mut().all(|task| task.as_mut().poll(context).is_pending()));
    assert!(sender.try_send(&SMALL).is_ok());
    assert_eq!(wakes.count(), 1, "the first");
    assert!(tasks[1].as_mut().poll(context).is_ready());
    assert!(tasks[0].as_mut().poll(context).is_pending());
    assert!(sender.try_send(&SMALL).is_ok());
    assert_eq!(wakes.count(), 2);
    assert!(tasks[0].as_mut().poll(context).is_ready());
}

/// Others do not make way for a task that was forgotten, where all are tasks.
#[test]
fn t24_a_forgotten_task_for_which_others_make_way() {
    let (sender, receiver) = full();
    let forgotten = Task::waiting(&sender, eighths(&sender, 6));
    thread::sleep(A_WHILE);
    receive(&receiver, 5);
    assert!(matches!(sender.try_send(&SMALL), Err(SendError::Full { .. })), "they make way");
    receive(&receiver, 1);
    assert_eq!(forgotten.wakes.count(), 1);
    mem::forget(forgotten);
    thread::sleep(A_WHILE);
    let mut first = Task::new(&sender, 56);
    if first.poll().is_pending() {
        assert_eq!(first.wakes.count(), 1);
        assert!(first.poll().is_ready());
    }
    assert!(Task::new(&sender, 56).poll().is_ready(), "they do no more");
}
