//! A channel beside a queue of the standard library, and between threads.

use std::collections::VecDeque;
use std::{mem, thread};

use bufmirror::bufcore::{ByteSink, ReserveError};
use bufmirror::{GetError, StaticChannel};
use testkit::pattern;
use testkit::trials::scaled;

/// Random calls, compared after each one.
fn like_a_queue<const BYTES: usize>() {
    let mut random = fastrand::Rng::with_seed(BYTES as u64);
    let mut channel = StaticChannel::<BYTES>::new();
    let capacity = channel.capacity();
    assert_eq!(capacity, BYTES / 2);
    for _ in 0..4 {
        let (mut producer, mut consumer) = channel.ends();
        let mut oracle = VecDeque::new();
        let mut next = 0_u8;
        for _ in 0..scaled(20_000) {
            let (held, room) = (oracle.len(), capacity - oracle.len());
            let n = random.usize(0..=capacity + 1);
            let bytes: Vec<u8> = (0..n).map(|at| next.wrapping_add(at as u8)).collect();
            let mut into = vec![0; n];
            let written = match random.u32(0..6) {
                0 => match producer.put(&bytes) {
                    Ok(()) => n,
                    Err(error) => {
                        assert_eq!(error, ReserveError { requested: n, available: room });
                        assert!(n > room);
                        0
                    }
                },
                1 => producer.put_some(&bytes),
                2 => {
                    let n = n.min(room);
                    producer.reserve(n).unwrap().copy_from_slice(&bytes[..n]);
                    let part = random.usize(0..=n);
                    producer.commit(part);
                    part
                }
                3 => {
                    let got = consumer.get(&mut into);
                    if n <= held {
                        assert!(got == Ok(()) && oracle.drain(..n).eq(into));
                    } else {
                        assert_eq!(got, Err(GetError { requested: n, available: held }));
                    }
                    0
                }
                4 => {
                    let got = consumer.get_some(&mut into);
                    assert_eq!(got, n.min(held));
                    assert!(oracle.drain(..got).eq(into[..got].iter().copied()));
                    0
                }
                _ => {
                    consumer.consume(n.min(held));
                    oracle.drain(..n.min(held));
                    0
                }
            };
            oracle.extend(&bytes[..written]);
            next = next.wrapping_add(written as u8);
            assert_eq!((consumer.len(), producer.spare_capacity()), (oracle.len(), capacity - oracle.len()));
            assert_eq!(consumer.is_empty(), oracle.is_empty());
            assert!(consumer.peek().iter().eq(&oracle), "the channel holds other bytes");
        }
    }
}

#[test]
fn a_channel_is_a_queue() {
    like_a_queue::<2>();
    like_a_queue::<3>();
    like_a_queue::<14>();
    like_a_queue::<128>();
    like_a_queue::<1001>();
}

#[test]
fn bytes_between_threads() {
    const BYTES: usize = 1 << 20;
    let mut channel = StaticChannel::<250>::new();
    let (mut producer, mut consumer) = channel.ends();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut sent = 0;
            while sent < BYTES {
                let room = producer.spare_capacity().min(BYTES - sent);
                let lent = producer.reserve(room).unwrap();
                pattern::fill(lent, 5, sent);
                producer.commit(room);
                sent += room;
                thread::yield_now();
            }
        });
        let mut read = 0;
        loop {
            let is_closed = consumer.is_closed();
            let filled = consumer.peek();
            pattern::check(filled, 5, read);
            let len = filled.len();
            consumer.consume(len);
            read += len;
            if is_closed && len == 0 {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(read, BYTES);
    });
}

#[test]
fn ends_that_go() {
    let mut channel = StaticChannel::<16>::new();
    let (producer, consumer) = channel.ends();
    assert!(!producer.is_closed() && !consumer.is_closed());
    drop(consumer);
    assert!(producer.is_closed());
    drop(producer);
    // An end that was forgotten is not there any more, and says nothing.
    let (producer, consumer) = channel.ends();
    #[allow(clippy::mem_forget, reason = "it is what this is about")]
    mem::forget(producer);
    assert!(!consumer.is_closed());
    drop(consumer);
    let (mut producer, mut consumer) = channel.ends();
    assert!(!producer.is_closed() && !consumer.is_closed() && consumer.is_empty());
    producer.put(b"12345678").unwrap();
    assert_eq!(consumer.peek(), b"12345678");
}

#[test]
#[should_panic(expected = "commit(3) of 2 bytes of room")]
fn commits_past_the_room() {
    let mut channel = StaticChannel::<4>::new();
    channel.ends().0.commit(3);
}

#[test]
#[should_panic(expected = "consume(1) of 0 bytes to read")]
fn consumes_past_the_end() {
    let mut channel = StaticChannel::<4>::new();
    channel.ends().1.consume(1);
}

#[test]
fn in_the_traits_of_streams() {
    let mut channel = StaticChannel::<64>::default();
    let (mut producer, mut consumer) = channel.ends();
    let sink: &mut dyn ByteSink = &mut producer;
    sink.reserve(8).unwrap().copy_from_slice(b"one\ntwo\n");
    sink.commit(8);
    let lines: Vec<_> = consumer.pieces(b'\n').into_iter().map(<[u8]>::to_vec).collect();
    assert_eq!(lines, [b"one", b"two"]);
    assert_eq!(format!("{producer:?}"), "Producer { capacity: 32, is_closed: false, .. }");
    assert_eq!(format!("{consumer:?}"), "Consumer { capacity: 32, is_closed: false, .. }");
    drop((producer, consumer));
    assert_eq!(format!("{channel:?}"), "StaticChannel { capacity: 32, .. }");
}
