//! T38: a task whose peer is always quick enough lets the other tasks of its thread run.

use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use bufmirror::{channel, messages};
use testkit::tasks::{lets_others_run, poll_new, select};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
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
    use std::future::poll_fn;
    use std::task::Poll;

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
        let waker = std::task::Waker::noop();
        let polled = testkit::tasks::poll(std::pin::pin!(task(1000)), waker);
        assert!(polled.is_ready());
    }
}

/// Runs a task that finds almost always what it waits for, under a time-out.
fn is_on_time(task: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let began = Instant::now();
    let limit = Duration::from_millis(50);
    let _ = runtime.block_on(async { timeout(limit, task).await });
    let took = began.elapsed();
    assert!(took < 20 * limit, "a time-out of {limit:?} after {took:?}");
}

/// Ends a task that nobody stops.
const HANGS: Duration = Duration::from_secs(5);

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
    let began = Instant::now();
    is_on_time(async {
        while began.elapsed() < HANGS {
            consumer.read_exact(&mut [0; 16]).await.unwrap();
        }
    });
    drop(consumer);
    peer.join().unwrap();
    let (sender, receiver) = messages::channel(1 << 16).unwrap();
    let began = Instant::now();
    is_on_time(async {
        while began.elapsed() < HANGS {
            sender.send_async(b"a message").await.unwrap();
            receiver.recv_async().await.unwrap();
        }
    });
}
