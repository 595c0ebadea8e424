//! Channels and queues of messages under load: bytes and messages are
//! checked against what was sent. Ends are cloned, sent elsewhere and dropped, and wait in all
//! ways, with futures that are dropped, polled late or without a wake.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use bufmirror::{Consumer, Producer, WaitError};
use fastrand::Rng;
use testkit::pattern;
use testkit::stress::{Round, patience, run};
use testkit::tasks::{block_on, poll};

/// Bytes that one channel carries.
const MOST_BYTES: usize = 128 << 10;
/// The head of a message: who sent it, and its number there.
const HEAD: usize = 16;

/// How an end of a channel waits.
macro_rules! wait {
    ($end:expr, $n:expr, $rng:expr) => {
        match $rng.u8(..8) {
            0..3 => $end.wait($n),
            3 => match $end.wait_timeout($n, Duration::from_micros($rng.u64(..300))) {
                Err(WaitError::TimedOut { .. }) => Ok(()),
                other => other,
            },
            4 => {
                // Polled and given up.
                let _ = poll(pin!($end.wait_async($n)), Waker::noop());
                Ok(())
            }
            _ => block_on($end.wait_async($n), patience()).expect("nobody woke an end that waits"),
        }
    };
}

fn write(producer: &mut Producer, seed: u64, from: usize, to: usize, rng: &mut Rng, round: &Round) -> usize {
    let mut at = from;
    while at < to {
        round.step();
        // Half of it at most, and so below: or else both ends wait for each other.
        let n = rng.usize(1..=(producer.capacity() / 2).min(to - at));
        match wait!(producer, n, rng) {
            Ok(()) => {}
            Err(WaitError::Closed { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        let room = producer.spare_capacity().min(to - at);
        let len = rng.usize(..=room);
        pattern::fill(producer.reserve(len).expect("there is room"), seed, at);
        producer.commit(len);
        at += len;
    }
    at
}

fn read(consumer: &mut Consumer, seed: u64, most: usize, rng: &mut Rng, round: &Round) -> usize {
    let mut at = 0;
    while at < most {
        round.step();
        let n = rng.usize(1..=consumer.capacity() / 2);
        let ended = match wait!(consumer, n, rng) {
            Ok(()) => false,
            Err(WaitError::Closed { .. }) => true,
            Err(error) => panic!("{error}"),
        };
        let filled = consumer.peek();
        pattern::check(filled, seed, at);
        let len = if ended { filled.len() } else { rng.usize(..=filled.len()) };
        if ended && len == 0 {
            break;
        }
        consumer.consume(len);
        at += len;
    }
    at
}

/// Pairs of threads, each with a channel; an end may go on to another thread, or go before all is
/// said.
fn channels(round: &Round) {
    thread::scope(|scope| {
        let threads = (0..round.threads() as u64).map(|pair| {
            scope.spawn(move || {
                let mut rng = round.rng(pair);
                while !round.is_over() {
                    channel(&mut rng, round);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the process ends with a panic"));
    });
}

fn channel(rng: &mut Rng, round: &Round) {
    let (mut producer, mut consumer) = bufmirror::channel(4096).expect("the system maps");
    let (seed, bytes) = (rng.u64(..), rng.usize(..MOST_BYTES));
    let most = if rng.u8(..4) == 0 { rng.usize(..=bytes) } else { usize::MAX };
    let (mut theirs, middle) = (rng.fork(), rng.usize(..=bytes));
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let at = write(&mut producer, seed, 0, middle, &mut theirs, round);
            // Another thread continues with it.
            let rest = thread::scope(|scope| {
                let rest = scope.spawn(move || write(&mut producer, seed, at, bytes, &mut theirs, round));
                rest.join().expect("the process ends with a panic")
            });
            if at < middle { at } else { rest }
        });
        let read = read(&mut consumer, seed, most, rng, round);
        if read < most {
            let written = writer.join().expect("the process ends with a panic");
            assert_eq!((read, written), (bytes, bytes), "bytes that did not arrive");
        } else {
            drop(consumer);
            writer.join().expect("the process ends with a panic");
        }
    });
}

/// Sends messages in all ways until the round is over; how many.
fn send(sender: &Sender, number: u64, rng: &mut Rng, round: &Round) -> u64 {
    let longest = sender.max_message();
    let mut bytes = vec![0; longest];
    let mut sent = 0_u64;
    while !round.is_over() {
        round.step();
        let len = if rng.u8(..16) == 0 { longest } else { longest.min(400) };
        let len = rng.usize(HEAD..=len);
        let fill = |slot: &mut [u8]| {
            slot[..8].copy_from_slice(&number.to_le_bytes());
            slot[8..HEAD].copy_from_slice(&sent.to_le_bytes());
            pattern::fill(&mut slot[HEAD..], number << 32 | sent, 0);
        };
        let message = &mut bytes[..len];
        fill(message);
        let done = match rng.u8(..8) {
            0 => sender.try_send(message),
            1 => sender.try_send_with(len, fill),
            2 => sender.send_timeout(message, Duration::from_micros(rng.u64(..300))),
            3 => sender.send_with(len, fill),
            4 => {
                // Polled once or twice, and given up: it was sent or it was not.
                let mut future = pin!(sender.send_async(message));
                let mut polled = poll(future.as_mut(), Waker::noop());
                if polled.is_pending() && rng.bool() {
                    polled = poll(future.as_mut(), Waker::noop());
                }
                match polled {
                    std::task::Poll::Ready(sent) => sent,
                    std::task::Poll::Pending => continue,
                }
            }
            5 => sender.send(message),
            _ => block_on(sender.send_async(message), patience()).expect("nobody woke a sender"),
        };
        match done {
            Ok(_) => sent += 1,
            Err(SendError::Full { .. } | SendError::TimedOut) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

/// What a receiver got: the numbers of the queue, and the sender's own.
type Got = Vec<(u64, u64, u64)>;

/// Receives in all ways until the queue is closed.
fn receive(receiver: &Receiver, rng: &mut Rng, round: &Round) -> Got {
    let mut into = vec![0; receiver.max_message()];
    let mut got = Got::new();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("eight"));
    let look = |bytes: &[u8], sequence| {
        let (sender, index) = (number(bytes), number(&bytes[8..]));
        pattern::check(&bytes[HEAD..], sender << 32 | index, 0);
        (sequence, sender, index)
    };
    loop {
        round.step();
        let timeout = Duration::from_micros(rng.u64(..300));
        let seen = match rng.u8(..8) {
            0 => receiver.try_recv().map(|message| look(&message, message.sequence())),
            1 => receiver.recv_timeout(timeout).map(|message| look(&message, message.sequence())),
            2 => receiver.recv_into(&mut into).map(|one| look(&into[..one.len], one.sequence)),
            3 => receiver.try_recv_into(&mut into).map(|one| look(&into[..one.len], one.sequence)),
            4 => {
                let mut future = pin!(receiver.recv_async());
                let mut polled = poll(future.as_mut(), Waker::noop());
                if polled.is_pending() && rng.bool() {
                    polled = poll(future.as_mut(), Waker::noop());
                }
                match polled {
                    std::task::Poll::Ready(one) => one.map(|message| look(&message, message.sequence())),
                    std::task::Poll::Pending => continue,
                }
            }
            5 => receiver.recv().map(|message| look(&message, message.sequence())),
            _ => awaited(receiver.recv_async()).map(|message| look(&message, message.sequence())),
        };
        match seen {
            Ok(one) => got.push(one),
            Err(RecvError::Empty | RecvError::TimedOut) => thread::yield_now(),
            Err(RecvError::Closed) => return got,
            Err(error) => panic!("{error}"),
        }
    }
}

fn awaited<F: Future>(future: F) -> F::Output {
    block_on(future, patience()).expect("nobody woke a receiver")
}

/// One queue, of which threads have clones of both ends; each message arrives once, in the order of
/// its sender.
fn messages(round: &Round) {
    let mut rng = round.rng(u64::MAX);
    let bytes = [4096, 16 << 10][rng.usize(..2)];
    let (sender, receiver) = messages::channel(bytes).expect("the system maps");
    let senders = rng.usize(1..round.threads()) as u64;
    let receivers = rng.usize(1..round.threads()) as u64;
    let (sent, all): (Vec<u64>, Got) = thread::scope(|scope| {
        let receiving: Vec<_> = (0..receivers)
            .map(|number| {
                let receiver = receiver.clone();
                scope.spawn(move || {
                    let got = receive(&receiver, &mut round.rng(1000 + number), round);
                    assert!(got.is_sorted(), "each receiver gets them in order");
                    got
                })
            })
            .collect();
        drop(receiver);
        let sending: Vec<_> = (0..senders)
            .map(|number| {
                let sender = sender.clone();
                scope.spawn(move || send(&sender, number, &mut round.rng(number), round))
            })
            .collect();
        drop(sender);
        let sent = sending.into_iter().map(|thread| thread.join().expect("the process ends with a panic"));
        let sent = sent.collect();
        let got = receiving.into_iter();
        // By joining them: a lock orders them in a way that ThreadSanitizer does not always see.
        let got = got.flat_map(|thread| thread.join().expect("the process ends with a panic")).collect();
        (sent, got)
    });
    let expected =
        (0..senders).flat_map(|sender| (0..sent[sender as usize]).map(move |index| (sender, index)));
    let got: BTreeSet<(u64, u64)> = all.iter().map(|&(_, sender, index)| (sender, index)).collect();
    assert_eq!(got.len(), all.len(), "messages that arrived twice");
    assert!(got.into_iter().eq(expected), "messages that did not arrive");
    let numbers: BTreeSet<u64> = all.iter().map(|&(number, _, _)| number).collect();
    assert!(numbers.into_iter().eq(0..all.len() as u64), "each number once, without a gap");
}

fn main() {
    run("mirror", &[("channel", &channels), ("messages", &messages)]);
}
