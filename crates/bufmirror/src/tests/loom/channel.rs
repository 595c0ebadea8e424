//! The ends of a channel: bytes that are handed over and back, ends that sleep, ends that go.
//!
//! A `Shadow` cell stands for each byte of the ring, and is written and read where a user would
//! write and read the byte. A missing order shows as a race on it, a lost wake as a deadlock.
//!
//! With the known defects `relaxed`, `nofence` and `nowake` some of these models fail, which is
//! noted at each. The light fence is a full one here; that the orders without it are enough is for
//! ThreadSanitizer to see (`tests/races.rs`), to which it is nothing.

use alloc::sync::Arc as StdArc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use loom::sync::Arc;
use loom::thread;
use testkit::models::{Shadow, Signal, finish};

use crate::channel::waking::ends::over;
use crate::map::Mirror;
use crate::{Consumer, Producer, WaitError};

/// Bytes of the ring: two, so that it is full, empty, and at its border all the time.
const CAPACITY: usize = 2;

type Shadows = Arc<[Shadow; CAPACITY]>;

fn channel() -> (Producer, Consumer, Shadows) {
    let (producer, consumer) = over(Mirror::on_heap(CAPACITY).expect("a few bytes"));
    (producer, consumer, Arc::default())
}

/// Writes `bytes` bytes, one at a time, and waits for room as `wait` does.
fn write(producer: &mut Producer, shadows: &Shadows, bytes: usize, wait: impl Fn(&mut Producer)) {
    for at in 0..bytes {
        wait(producer);
        producer.reserve(1).expect("waited for")[0] = at as u8;
        shadows[at % CAPACITY].write();
        producer.commit(1);
    }
}

/// Reads `bytes` bytes, as many as there are at a time.
fn read(consumer: &mut Consumer, shadows: &Shadows, bytes: usize, wait: impl Fn(&mut Consumer)) {
    let mut at = 0;
    while at < bytes {
        wait(consumer);
        let filled = consumer.peek();
        let len = filled.len();
        for (index, &byte) in (at..).zip(filled) {
            assert_eq!(usize::from(byte), index);
            // As often as the ring has gone round.
            assert_eq!(shadows[index % CAPACITY].read() as usize, index / CAPACITY + 1);
        }
        consumer.consume(len);
        at += len;
    }
}

fn both(bytes: usize, produce: fn(&mut Producer), consume: fn(&mut Consumer)) {
    loom::model(move || {
        let (mut producer, mut consumer, shadows) = channel();
        let writer = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || write(&mut producer, &shadows, bytes, produce))
        };
        read(&mut consumer, &shadows, bytes, consume);
        writer.join().unwrap();
    });
}

/// Nobody sleeps. Fails with `relaxed`.
#[test]
fn loom_channel_bytes() {
    both(
        3,
        |producer| {
            while producer.spare_capacity() == 0 {
                thread::yield_now();
            }
        },
        |consumer| {
            while consumer.len() == 0 {
                thread::yield_now();
            }
        },
    );
}

/// Both sleep whenever they have to. Fails with `relaxed`, `nofence` and `nowake`.
#[test]
fn loom_channel_sleeping() {
    both(
        3,
        |producer| finish(pin!(producer.wait_async(1)), &Signal::new()).expect("the consumer lives"),
        |consumer| finish(pin!(consumer.wait_async(1)), &Signal::new()).expect("the producer lives"),
    );
}

/// What was written before the producer went is read after it, also by who sleeps at that moment.
/// Fails with `nofence` and `nowake`.
#[test]
fn loom_channel_producer_goes() {
    loom::model(|| {
        let (mut producer, mut consumer, shadows) = channel();
        let writer = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || {
                write(&mut producer, &shadows, 1, |_| {});
                drop(producer);
            })
        };
        let ended = finish(pin!(consumer.wait_async(2)), &Signal::new());
        assert_eq!(ended, Err(WaitError::Closed { requested: 2, available: 1 }));
        read(&mut consumer, &shadows, 1, |_| {});
        writer.join().unwrap();
    });
}

/// Who waits for room is told that nobody will make any. Fails with `nofence` and `nowake`.
#[test]
fn loom_channel_consumer_goes() {
    loom::model(|| {
        let (mut producer, consumer, shadows) = channel();
        write(&mut producer, &shadows, CAPACITY, |_| {});
        let reader = thread::spawn(move || drop(consumer));
        let ended = finish(pin!(producer.wait_async(1)), &Signal::new());
        assert_eq!(ended, Err(WaitError::Closed { requested: 1, available: 0 }));
        reader.join().unwrap();
    });
}

/// A future that was dropped loses nothing: the next one is woken. Fails with `relaxed` and
/// `nofence`.
#[test]
fn loom_channel_wait_given_up() {
    loom::model(|| {
        let (mut producer, mut consumer, shadows) = channel();
        let writer = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || write(&mut producer, &shadows, 1, |_| {}))
        };
        let first = pin!(consumer.wait_async(1)).poll(&mut Context::from_waker(Waker::noop()));
        if first == Poll::Pending {
            let signal = Signal::new();
            assert_eq!(finish(pin!(consumer.wait_async(1)), &StdArc::clone(&signal)), Ok(()));
        }
        read(&mut consumer, &shadows, 1, |_| {});
        writer.join().unwrap();
    });
}
