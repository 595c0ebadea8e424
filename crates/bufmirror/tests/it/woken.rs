//! Tasks that were woken and are not polled: as many are woken as there are messages, or room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use testkit::tasks::{Counting, counting};

/// Until a thread sleeps that has begun to wait.
const A_WHILE: Duration = Duration::from_millis(100);
/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(20);

fn queue() -> (Sender, Receiver) {
    messages::channel(4096).expect("a small ring can be mapped")
}

/// A task that waits, and how often it was woken.
struct Task<F> {
    future: Pin<Box<F>>,
    waker: Waker,
    wakes: std::sync::Arc<Counting>,
}

impl<F: Future> Task<F> {
    /// Polls a future, which has to wait.
    fn waiting(future: F) -> Self {
        let (wakes, waker) = counting();
        let mut task = Self { future: Box::pin(future), waker, wakes };
        assert!(task.poll().is_pending());
        task
    }

    fn poll(&mut self) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

fn wakes<F>(tasks: &[Task<F>]) -> Vec<usize> {
    tasks.iter().map(|task| task.wakes.count()).collect()
}

/// Publishes `count` messages of a byte at the same moment.
fn send_at_once(sender: &Sender, count: usize) {
    let write = |slot: &mut [u8]| {
        slot.fill(0);
        for number in 1..count {
            sender.try_send(&[number as u8]).expect("there is room");
        }
    };
    sender.try_send_with(1, write).expect("there is room");
}

/// Fills the queue with messages of 56 bytes, takes `count` of them, and frees their room at the
/// same moment.
fn free_at_once(receiver: &Receiver, count: usize) {
    let taken: Vec<_> = (0..count).map(|_| receiver.try_recv().expect("the queue is full")).collect();
    taken.into_iter().rev().for_each(drop);
}

/// Runs `waits` in a thread until it sleeps, then `asleep`; both are over when this returns.
fn beside_a_thread<R: Send>(waits: impl FnOnce() -> R + Send, asleep: impl FnOnce()) -> R {
    thread::scope(|scope| {
        let began = Instant::now();
        let thread = scope.spawn(waits);
        thread::sleep(A_WHILE);
        asleep();
        let result = thread.join().expect("it does not panic");
        assert!(began.elapsed() < LONG / 2, "the thread was not woken");
        result
    })
}

#[test]
fn each_message_published_at_once_wakes_a_task() {
    let (sender, receiver) = queue();
    let tasks = [0; 4].map(|_| Task::waiting(receiver.recv_async()));
    send_at_once(&sender, 3);
    assert_eq!(wakes(&tasks), [1, 1, 1, 0], "3 messages");
}

#[test]
fn each_message_of_a_batch_wakes_a_task() {
    for len in [1, 1000] {
        let (sender, receiver) = queue();
        let tasks = [0; 4].map(|_| Task::waiting(receiver.recv_async()));
        sender.try_send_many(&[&[7; 1000][..len]; 3]).expect("there is room");
        assert_eq!(wakes(&tasks), [1, 1, 1, 0], "3 messages");
    }
}

#[test]
fn each_message_that_a_thread_leaves_wakes_a_task() {
    let (sender, receiver) = queue();
    let mut tasks = Vec::new();
    let waits = || receiver.recv_timeout(LONG).map(|message| message.len());
    let received = beside_a_thread(waits, || {
        tasks.extend((0..3).map(|_| Task::waiting(receiver.recv_async())));
        send_at_once(&sender, 3);
    });
    assert_eq!(received, Ok(1));
    assert_eq!(wakes(&tasks), [1, 1, 0], "2 of 3 messages are left");
    assert!(tasks[1].poll().is_ready());
}

#[test]
fn each_message_that_does_not_fit_a_threads_buffer_wakes_a_task() {
    let (sender, receiver) = queue();
    let mut tasks = Vec::new();
    let received = beside_a_thread(
        || receiver.recv_into(&mut []),
        || {
            tasks.extend((0..3).map(|_| Task::waiting(receiver.recv_async())));
            send_at_once(&sender, 2);
        },
    );
    assert_eq!(received, Err(RecvError::TooSmall { needed: 1, available: 0 }));
    assert_eq!(wakes(&tasks), [1, 1, 0], "2 messages are left");
}

/// The thread is asleep, or spins, or has its message, as each is sent.
#[test]
fn each_message_sent_while_a_thread_spins_wakes_a_task() {
    for _ in 0..10 {
        let (sender, receiver) = queue();
        let mut tasks = Vec::new();
        let waits = || receiver.recv_timeout(LONG).map(|message| message.len());
        let received = beside_a_thread(waits, || {
            tasks.extend((0..2).map(|_| Task::waiting(receiver.recv_async())));
            (0..3).for_each(|_| assert!(sender.try_send(b"x").is_ok()));
        });
        assert_eq!(received, Ok(1));
        assert_eq!(wakes(&tasks), [1, 1], "2 of 3 messages are left");
    }
}

#[test]
fn room_freed_at_once_wakes_each_task_that_it_is_enough_for() {
    let (sender, receiver) = queue();
    while sender.try_send(&[0; 56]).is_ok() {}
    let tasks = [[0; 56]; 4].map(|message| {
        let sender = sender.clone();
        Task::waiting(async move { sender.send_async(&message).await })
    });
    free_at_once(&receiver, 3);
    assert_eq!(wakes(&tasks), [1, 1, 1, 0], "room for 3");
    drop(receiver.try_recv());
    assert_eq!(wakes(&tasks), [1; 4], "room for 4");
}

#[test]
fn room_that_a_thread_leaves_wakes_each_task_that_it_is_enough_for() {
    let (sender, receiver) = queue();
    while sender.try_send(&[0; 56]).is_ok() {}
    let mut tasks = Vec::new();
    let sent = beside_a_thread(
        || sender.send_timeout(&[1; 56], LONG),
        || {
            tasks.extend((0..3).map(|_| Task::waiting(sender.send_async(&[2; 56]))));
            free_at_once(&receiver, 3);
        },
    );
    assert!(sent.is_ok());
    assert_eq!(wakes(&tasks), [1, 1, 0], "room for 2 is left");
    assert!(tasks[1].poll().is_ready());
}

#[test]
fn closing_wakes_each_task() {
    let (sender, receiver) = queue();
    let receivers = [0; 3].map(|_| Task::waiting(receiver.recv_async()));
    sender.close();
    assert_eq!(wakes(&receivers), [1; 3]);

    let (sender, receiver) = queue();
    while sender.try_send(&[0; 56]).is_ok() {}
    let mut senders = [0; 3].map(|_| Task::waiting(sender.send_async(&[1; 56])));
    receiver.close();
    assert_eq!(wakes(&senders), [1; 3]);
    assert!(matches!(senders[2].poll(), Poll::Ready(Err(SendError::Closed))));
}

#[test]
fn a_woken_task_that_is_dropped_wakes_one_other() {
    let (sender, receiver) = queue();
    let mut tasks: Vec<_> = (0..6).map(|_| Task::waiting(receiver.recv_async())).collect();
    send_at_once(&sender, 2);
    assert_eq!(wakes(&tasks), [1, 1, 0, 0, 0, 0]);
    drop(tasks.remove(0));
    assert_eq!(wakes(&tasks), [1, 1, 0, 0, 0]);
    drop(tasks.remove(0));
    assert_eq!(wakes(&tasks), [1, 1, 0, 0]);
    // One that was woken and waits again, since another has its message, is woken by a later one.
    (0..2).for_each(|_| assert!(receiver.try_recv().is_ok()));
    assert!(tasks[0].poll().is_pending());
    send_at_once(&sender, 2);
    assert_eq!(wakes(&tasks), [2, 1, 1, 0]);
}

/// What is promised to a task that was forgotten is promised until others have taken it.
#[test]
fn a_forgotten_task_keeps_no_task_asleep_beside_later_messages() {
    let (sender, receiver) = queue();
    let forgotten = Task::waiting(receiver.recv_async());
    assert!(sender.try_send(b"x").is_ok() && receiver.try_recv().is_ok());
    std::mem::forget(forgotten);
    let tasks = [0; 3].map(|_| Task::waiting(receiver.recv_async()));
    send_at_once(&sender, 2);
    assert_eq!(wakes(&tasks), [1, 1, 0], "2 messages");
}

/// Where others took the room that tasks were woken for, the first stays in front of one that
/// needs more.
#[test]
fn woken_tasks_that_sleep_again_keep_their_order() {
    let (sender, receiver) = queue();
    let fill = || while sender.try_send(&[0; 56]).is_ok() {};
    fill();
    let mut tasks = [56, 248].map(|len| {
        let sender = &sender;
        Task::waiting(async move { sender.send_async(&vec![0; len]).await })
    });
    free_at_once(&receiver, 5);
    assert_eq!(wakes(&tasks), [1, 1]);
    fill();
    assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
    free_at_once(&receiver, 1);
    assert_eq!(wakes(&tasks), [2, 1]);
    assert!(tasks[0].poll().is_ready());
}
