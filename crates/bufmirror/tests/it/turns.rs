//! T38: a task whose peer is always quick enough lets the other tasks of its thread run.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufmirror::{channel, messages};
use testkit::tasks::{lets_others_run, poll_new, select};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{coop, yield_now};
use tokio::time::timeout;

#[test]
fn t38_both_ends_of_a_channel_let_others_run() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    lets_others_run(async || {
        producer.wait_async(4096).await.unwrap();
        producer.put(&[3; 4096]).unwrap();
        consumer.wait_async(1).await.unwrap();
        consumer.consume(4096);
    });
    producer.put(b"x\ny\n").unwrap();
    lets_others_run(async || consumer.wait_piece_async(b'\n').await.unwrap());
    lets_others_run(async || producer.wait_async(1).await.unwrap());
}

#[test]
fn t38_reads_and_writes_of_tokio_let_others_run() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    lets_others_run(async || {
        producer.write_all(&[3; 4096]).await.unwrap();
        consumer.read_exact(&mut [0; 4096]).await.unwrap();
    });
    lets_others_run(async || {
        assert!(producer.read_from_async(&mut &[3; 100][..]).await.unwrap() > 0);
        let n = consumer.fill_buf().await.unwrap().len();
        AsyncBufRead::consume(Pin::new(&mut consumer), n);
    });
    producer.put(b"a line").unwrap();
    lets_others_run(async || {
        assert_eq!(consumer.fill_buf().await.unwrap(), b"a line");
        AsyncBufRead::consume(Pin::new(&mut consumer), 0);
    });
    drop(producer);
    consumer.consume(6);
    lets_others_run(async || assert_eq!(consumer.read(&mut [0; 9]).await.unwrap(), 0, "the end"));
}

#[test]
fn t38_messages_let_others_run() {
    let (sender, receiver) = messages::channel(4096).unwrap();
    for len in [1, 255, 256, 257, 4000] {
        lets_others_run(async || {
            sender.send_async(&vec![3; len]).await.unwrap();
            assert_eq!(receiver.recv_async().await.unwrap().len(), len);
        });
    }
    drop(sender);
    lets_others_run(async || assert!(receiver.recv_async().await.is_err()));
}

#[test]
fn t38_a_task_that_selects_one_of_two_ends_lets_others_run() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let (mut other, mut idle) = channel(4096).unwrap();
    lets_others_run(async || select(producer.wait_async(1), other.wait_async(1)).await.unwrap());
    producer.put(b"x").unwrap();
    lets_others_run(async || select(idle.wait_async(1), consumer.wait_async(1)).await.unwrap());
}

#[test]
fn t38_a_task_that_selects_one_of_two_messages_lets_others_run() {
    let queues = [(); 2].map(|()| messages::channel(4096).unwrap());
    let [(_sender, receiver), (other_sender, other_receiver)] = &queues;
    lets_others_run(async || {
        other_sender.try_send(b"a message").unwrap();
        drop(select(receiver.recv_async(), other_receiver.recv_async()).await.unwrap());
    });
}

#[test]
fn t38_futures_that_are_polled_once_get_their_messages() {
    let (sender, receiver) = messages::channel(4096).unwrap();
    for _ in 0..1000 {
        sender.try_send(b"a message").unwrap();
        assert_eq!(*poll_new(|| receiver.recv_async()).unwrap(), *b"a message");
    }
}

/// However many operations other ends of the task complete in each turn, an end that was pending for
/// the sake of other tasks goes on at its next poll.
#[test]
fn t38_no_end_is_passed_over_twice() {
    let (mut producer, _consumer) = channel(4096).unwrap();
    for others in 0..300 {
        let (mut busy, _quiet) = channel(4096).unwrap();
        let mut refused = 0;
        let mut task = async |rounds: usize| {
            for _ in 0..rounds {
                poll_fn(|cx| {
                    for _ in 0..others {
                        let _ = busy.poll_wait(cx, 1);
                    }
                    let is_pending = producer.poll_wait(cx, 1).is_pending();
                    refused = if is_pending { refused + 1 } else { 0 };
                    assert!(refused < 2, "{others} others, and the last one has no turn");
                    Poll::Ready(())
                })
                .await;
            }
        };
        let polled = testkit::tasks::poll(pin!(task(300)), Waker::noop());
        assert!(polled.is_ready());
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// The time after which tasks are stopped that find almost always what they wait for.
const LIMIT: Duration = Duration::from_millis(50);

/// What a task does for long after that: it ends when that is more than some turns of it. How long a
/// turn takes is up to the machine.
struct Late(Instant, usize);

impl Late {
    fn new() -> Self {
        Self(Instant::now(), 0)
    }

    fn is_little(&mut self) -> bool {
        // The timers of tokio count milliseconds.
        self.1 += usize::from(self.0.elapsed() > 2 * LIMIT);
        self.1 < 1000
    }
}

/// Runs a task, which is stopped before it ends.
fn is_on_time(task: impl Future<Output = ()> + Send + 'static) {
    let ended = current_thread().block_on(async { tokio::spawn(timeout(LIMIT, task)).await.unwrap() });
    assert!(ended.is_err(), "the time-out comes too late");
}

#[test]
fn t38_a_time_out_beside_a_quick_peer() {
    let (mut producer, mut consumer) = channel(1 << 16).unwrap();
    let peer = thread::spawn(move || {
        while producer.wait(1).is_ok() {
            let free = producer.spare_capacity();
            producer.reserve(free).unwrap();
            producer.commit(free);
        }
    });
    let mut late = Late::new();
    is_on_time(async move {
        while late.is_little() {
            consumer.read_exact(&mut [0; 16]).await.unwrap();
        }
    });
    peer.join().unwrap();
    let (sender, receiver) = messages::channel(1 << 16).unwrap();
    let mut late = Late::new();
    is_on_time(async move {
        while late.is_little() {
            sender.send_async(b"a message").await.unwrap();
            receiver.recv_async().await.unwrap();
        }
    });
}

/// The runtime looks at its timers in each turn that a task leaves it, however long the task's own are.
#[test]
fn t38_a_time_out_beside_slow_operations() {
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let mut late = Late::new();
    is_on_time(async move {
        while late.is_little() {
            producer.write_all(b"a").await.unwrap();
            consumer.read_exact(&mut [0]).await.unwrap();
            thread::sleep(Duration::from_micros(500));
        }
    });
}

/// A task of tokio's with two ends that are always ready lets the other branch of its `select!` run:
/// tokio's own test of its `duplex`.
#[test]
fn t38_a_channel_is_cooperative_as_a_duplex() {
    let (mut producer, mut consumer) = channel(8192).unwrap();
    let (sender, receiver) = messages::channel(8192).unwrap();
    let task = async {
        let mut bytes = [3; 4096];
        loop {
            producer.write_all(&bytes).await.unwrap();
            consumer.read_exact(&mut bytes).await.unwrap();
            sender.send_async(&bytes[..100]).await.unwrap();
            receiver.recv_async().await.unwrap();
        }
    };
    current_thread().block_on(async {
        tokio::select! {
            biased;
            () = task => {}
            () = yield_now() => {}
        }
    });
}

/// A poll of a task completes just as many operations as tokio's budget has, whichever they are:
/// tokio-util's test of its `simplex`.
#[test]
fn t38_operations_count_against_the_budget_of_a_task() {
    const BUDGET: usize = 128;
    let (mut producer, mut consumer) = channel(4096).unwrap();
    let (sender, receiver) = messages::channel(4096).unwrap();
    let (small, mut into) = ([3], [0]);
    let mut operations: [&mut (dyn FnMut(&mut Context<'_>) -> bool + Send); 4] = [
        &mut |cx| Pin::new(&mut producer).poll_write(cx, &small).is_ready(),
        &mut |cx| Pin::new(&mut consumer).poll_read(cx, &mut ReadBuf::new(&mut into)).is_ready(),
        &mut |cx| pin!(sender.send_async(&small)).poll(cx).is_ready(),
        &mut |cx| pin!(receiver.recv_async()).poll(cx).is_ready(),
    ];
    for operation in &mut operations {
        // A thread of its own, since others of a thread count as well.
        let mut one_poll = async || {
            let done =
                (0..=BUDGET).take_while(|_| operation(&mut Context::from_waker(Waker::noop()))).count();
            (done, coop::has_budget_remaining())
        };
        let polled = thread::scope(|scope| {
            scope.spawn(|| current_thread().block_on(one_poll())).join().expect("operations succeed")
        });
        assert_eq!(polled, (BUDGET, false), "operations, and whether the task may go on");
    }
}
