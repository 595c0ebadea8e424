//! The ends of a channel: bytes that are handed over and back, ends that go.
//!
//! A `Shadow` cell stands for each byte, and is written and read where a user would write and read
//! the byte. A missing order shows as a race on it.

use alloc::boxed::Box;

use loom::sync::Arc;
use loom::thread;
use testkit::models::Shadow;

use crate::{StaticChannel, StaticConsumer, StaticProducer};

/// Bytes that it holds: two, so that it is full, empty, and at its border all the time.
const CAPACITY: usize = 2;

type Shadows = Arc<[Shadow; CAPACITY]>;

/// The ends of a channel that stays, as a static does, until the model's run is over.
fn model(f: impl Fn(StaticProducer<'static>, StaticConsumer<'static>, Shadows) + Sync + Send + 'static) {
    loom::model(move || {
        let channel: *mut StaticChannel<{ 2 * CAPACITY }> = Box::into_raw(Box::new(StaticChannel::new()));
        // SAFETY: it is freed below, when the threads that have the ends have been joined.
        let (producer, consumer) = unsafe { &mut *channel }.ends();
        f(producer, consumer, Arc::default());
        // SAFETY: the box from above; both ends were dropped.
        drop(unsafe { Box::from_raw(channel) });
    });
}

/// Writes `bytes` bytes, one at a time.
fn write(producer: &mut StaticProducer<'_>, shadows: &Shadows, bytes: usize) {
    for at in 0..bytes {
        while producer.spare_capacity() == 0 {
            thread::yield_now();
        }
        producer.reserve(1).expect("waited for")[0] = at as u8;
        shadows[at % CAPACITY].write();
        producer.commit(1);
    }
}

/// Looks at all bytes that there are; `at` is the number of those before.
fn read(consumer: &mut StaticConsumer<'_>, shadows: &Shadows, at: usize) -> usize {
    let filled = consumer.peek();
    let len = filled.len();
    for (index, &byte) in (at..).zip(filled) {
        assert_eq!(usize::from(byte), index);
        // As often as the ring has gone round.
        assert_eq!(shadows[index % CAPACITY].read() as usize, index / CAPACITY + 1);
    }
    consumer.consume(len);
    len
}

/// Bytes go round; room comes back.
#[test]
fn loom_static_channel_bytes() {
    const BYTES: usize = 3;
    model(|mut producer, mut consumer, shadows| {
        let writer = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || write(&mut producer, &shadows, BYTES))
        };
        let mut at = 0;
        while at < BYTES {
            at += read(&mut consumer, &shadows, at);
            thread::yield_now();
        }
        writer.join().unwrap();
    });
}

/// A consumer that sees the producer gone sees all that it wrote.
#[test]
fn loom_static_channel_producer_goes() {
    model(|mut producer, mut consumer, shadows| {
        let writer = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || write(&mut producer, &shadows, 1))
        };
        if consumer.is_closed() {
            assert_eq!(read(&mut consumer, &shadows, 0), 1);
        }
        writer.join().unwrap();
    });
}

/// A producer that sees the consumer gone may use what that one read.
#[test]
fn loom_static_channel_consumer_goes() {
    model(|mut producer, mut consumer, shadows| {
        write(&mut producer, &shadows, 1);
        let reader = {
            let shadows = Arc::clone(&shadows);
            thread::spawn(move || {
                assert_eq!(read(&mut consumer, &shadows, 0), 1);
            })
        };
        if producer.is_closed() {
            assert_eq!(producer.spare_capacity(), CAPACITY);
        }
        reader.join().unwrap();
    });
}
