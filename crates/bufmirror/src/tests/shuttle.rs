//! Larger models than loom's, in schedules that shuttle draws. They are channels that carry many
//! times their capacity, queues of messages with up to six threads, and futures that are handled
//! carelessly. All accesses are in one order here, so what orders are for is loom's to see.
//!
//! With the known defects `nowake`, `unpolled`, `unguarded`, `one-guard`, `guard-sleeps-on` and
//! `lapse-unseen` some of these models fail, which is noted at each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use shuttle::sync::Mutex;
use shuttle::thread;
use testkit::models::{Signal, choice, explore, finish, handle_carelessly};

use crate::channel::waking::ends::over;
use crate::map::Mirror;
use crate::messages::{self, Receiver, RecvError, SendError, Sender};
use crate::{Consumer, Producer, WaitError};

const ITERATIONS: usize = 3000;
/// Bytes of the ring of a channel, and of what it carries.
const CAPACITY: usize = 4;
const BYTES: usize = 24;
/// A frame of a message of up to eight bytes.
const FRAME: usize = 16;

/// How an end of a channel waits.
macro_rules! wait {
    ($end:expr, $n:expr) => {
        match choice(3) {
            0 => handle_carelessly($end.wait_async($n), false).unwrap_or(Ok(())),
            1 => $end.wait($n),
            _ => finish(pin!($end.wait_async($n)), &Signal::new()),
        }
    };
}

fn write(producer: &mut Producer, from: usize, to: usize) -> usize {
    let mut at = from;
    while at < to {
        match wait!(producer, 1 + choice((CAPACITY / 2).min(to - at))) {
            Ok(()) => {}
            Err(WaitError::Closed { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        let len = producer.spare_capacity().min(to - at);
        let room = producer.reserve(len).expect("there is room");
        (at..).zip(room).for_each(|(index, byte)| *byte = index as u8);
        producer.commit(len);
        at += len;
    }
    at
}

fn read(consumer: &mut Consumer, most: usize) -> usize {
    let mut at = 0;
    // This number of the oldest bytes was changed in place.
    let mut changed = 0;
    while at < most {
        let ended = match wait!(consumer, 1 + choice(CAPACITY / 2)) {
            Ok(()) => false,
            Err(WaitError::Closed { .. }) => true,
            Err(error) => panic!("{error}"),
        };
        let filled = consumer.peek_mut();
        let expected = |index: usize| if index < at + changed { !(index as u8) } else { index as u8 };
        assert!((at..).zip(&*filled).all(|(index, &byte)| byte == expected(index)));
        let len = filled.len();
        if ended && len == 0 {
            break;
        }
        if len == 0 {
            continue;
        }
        if choice(2) == 0 {
            filled[changed..].iter_mut().for_each(|byte| *byte = !*byte);
            changed = len;
        }
        let len = 1 + choice(len);
        consumer.consume(len);
        at += len;
        changed = changed.saturating_sub(len);
    }
    at
}

/// Bytes go through a ring that is full and empty all the time. An end may move to another thread,
/// or go early. Fails with `nowake`.
#[test]
fn shuttle_channel() {
    explore(ITERATIONS, || {
        let (mut producer, mut consumer) = over(Mirror::on_heap(CAPACITY).expect("a few bytes"));
        let most = if choice(4) == 0 { choice(BYTES) } else { usize::MAX };
        let middle = choice(BYTES);
        let first = thread::spawn(move || {
            let at = write(&mut producer, 0, middle);
            let rest = thread::spawn(move || if at < middle { at } else { write(&mut producer, at, BYTES) });
            rest.join().expect("it is fine")
        });
        let read = read(&mut consumer, most);
        drop(consumer);
        let written = first.join().expect("it is fine");
        assert!(read >= most || (read, written) == (BYTES, BYTES), "{read} of {written} bytes arrived");
    });
}

/// Messages that were received: sender and number there.
type Got = Arc<Mutex<Vec<(u8, u8)>>>;

/// The sender of messages that may be sent, or not.
const IDLE: u8 = u8::MAX;

/// With `has_idle`, one task beside each sender needs much room, may be woken, and is not polled
/// any more: then all who send are threads.
fn send(sender: &Sender, number: u8, messages: u8, has_idle: bool) -> u8 {
    let mut idle = Box::pin(sender.send_async(&[IDLE; 24]));
    if has_idle {
        let _ = idle.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    let mut sent = 0;
    while sent < messages {
        // A long one now and then: it needs more than one place.
        let bytes = if choice(4) == 0 { 24 } else { 8 };
        let mut message = [0; 24];
        message[..2].copy_from_slice(&[number, sent]);
        let message = &message[..bytes];
        let pair = [[number, sent, 0, 0, 0, 0, 0, 0], [number, sent + 1, 0, 0, 0, 0, 0, 0]];
        let pair: [&[u8]; 2] = [&pair[0], &pair[1]];
        let mut count = 1;
        let done = match choice(6) {
            0 => Some(sender.try_send(message)),
            4 => Some(sender.try_send_with(24, |room| {
                room[..bytes].copy_from_slice(message);
                bytes
            })),
            5 if messages - sent > 1 => {
                count = 2;
                let numbers = match choice(if has_idle { 2 } else { 3 }) {
                    0 => sender.try_send_many(&pair),
                    1 => sender.send_many(&pair),
                    _ => finish(pin!(sender.send_many_async(&pair)), &Signal::new()),
                };
                Some(numbers.map(|numbers| numbers.start))
            }
            _ if has_idle => Some(sender.send(message)),
            1 => handle_carelessly(sender.send_async(message), false),
            2 => Some(sender.send(message)),
            _ => Some(finish(pin!(sender.send_async(message)), &Signal::new())),
        };
        match done {
            Some(Ok(_)) => sent += count,
            None | Some(Err(SendError::Full { .. })) => thread::yield_now(),
            Some(Err(error)) => panic!("{error}"),
        }
    }
    sent
}

/// With `has_idle`, one task beside each receiver may be woken and is not polled any more: then all
/// who receive are threads, since such a task keeps the message that it was woken for from other
/// tasks.
fn receive(receiver: &Receiver, got: &Got, has_idle: bool) {
    let mut idle = Box::pin(receiver.recv_async());
    if has_idle && let Poll::Ready(Ok(message)) = idle.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    {
        got.lock().expect("nobody panics with it").push((message[0], message[1]));
    }
    loop {
        let one = match choice(5) {
            0 => Some(receiver.try_recv()),
            4 => match receive_many(receiver, got, has_idle) {
                Ok(()) => continue,
                Err(error) => Some(Err(error)),
            },
            _ if has_idle => Some(receiver.recv()),
            1 => handle_carelessly(receiver.recv_async(), false),
            2 => Some(receiver.recv()),
            _ => Some(finish(pin!(receiver.recv_async()), &Signal::new())),
        };
        match one {
            Some(Ok(message)) => {
                let one = (message[0], message[1]);
                thread::yield_now();
                drop(message);
                got.lock().expect("nobody panics with it").push(one);
            }
            None | Some(Err(RecvError::Empty)) => thread::yield_now(),
            Some(Err(RecvError::Closed)) => return,
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

fn receive_many(receiver: &Receiver, got: &Got, has_idle: bool) -> Result<(), RecvError> {
    let max = 1 + choice(3);
    let batch = match choice(if has_idle { 2 } else { 3 }) {
        0 => receiver.try_recv_many(max),
        1 => receiver.recv_many(max),
        _ => finish(pin!(receiver.recv_many_async(max)), &Signal::new()),
    }?;
    let some: Vec<_> = batch.iter().map(|message| (message[0], message[1])).collect();
    assert!(some.len() <= max);
    thread::yield_now();
    drop(batch);
    got.lock().expect("nobody panics with it").extend(some);
    Ok(())
}

/// Each message arrives once, whoever sleeps, gives up, or is woken and does not look.
fn messages(frames: usize, senders: u8, receivers: usize, messages: u8, has_idle: bool) {
    explore(ITERATIONS, move || {
        let (sender, receiver) = messages::over(Mirror::on_heap(frames * FRAME).expect("the heap has room"));
        let got = Got::default();
        let receiving: Vec<_> = (0..receivers)
            .map(|_| {
                let (receiver, got) = (receiver.clone(), Arc::clone(&got));
                thread::spawn(move || receive(&receiver, &got, has_idle))
            })
            .collect();
        drop(receiver);
        let sending: Vec<_> = (0..senders)
            .map(|number| {
                let sender = sender.clone();
                thread::spawn(move || send(&sender, number, messages, has_idle))
            })
            .collect();
        drop(sender);
        sending.into_iter().for_each(|thread| assert_eq!(thread.join().expect("it is fine"), messages));
        receiving.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        let mut got = core::mem::take(&mut *got.lock().expect("nobody panics with it"));
        got.retain(|&(sender, _)| sender != IDLE);
        got.sort_unstable();
        let all = (0..senders).flat_map(|sender| (0..messages).map(move |index| (sender, index)));
        assert!(got.iter().copied().eq(all), "{got:?} arrived");
    });
}

/// Fails with `nowake`.
#[test]
fn shuttle_messages_two_to_two() {
    messages(3, 2, 2, 4, false);
}

/// Fails with all of them.
#[test]
fn shuttle_messages_beside_idle_tasks() {
    messages(3, 2, 2, 4, true);
}

/// Who has sent a message finds one, and who has received one finds its room, whatever others copy
/// meanwhile. Fails with `a-lap-unseen`, and in longer runs if the looks before and after the last
/// attempt need not agree.
#[test]
fn shuttle_messages_linearizable() {
    explore(20 * ITERATIONS, || {
        // One frame for each thread, so that positions come round again soon.
        let (sender, receiver) = messages::over(Mirror::on_heap(3 * 24).expect("the heap has room"));
        let threads = [16, 8, 8].map(|len| {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            thread::spawn(move || {
                for _ in 0..4 {
                    sender.try_send(&[7; 16][..len]).expect("there is room for one of each");
                    receiver.try_recv_into(&mut [0; 16]).expect("each has sent one");
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().expect("it is fine"));
    });
}

/// Fails with `nowake`.
#[test]
fn shuttle_messages_one_to_three() {
    messages(2, 1, 3, 6, false);
}

/// Fails with `nowake`.
#[test]
fn shuttle_messages_three_to_one() {
    messages(3, 3, 1, 3, false);
}
