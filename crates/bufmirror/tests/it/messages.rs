//! Queues of messages between threads.

use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::IoSlice;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::thread;
use std::time::Instant;

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use bufmirror::{Builder, ConfigError};
use testkit::pattern;
use testkit::trials::scaled;

/// Long enough that what has to go to sleep does.
const NAP: Duration = Duration::from_millis(20);
/// Longer than anything takes that is woken.
const LONG: Duration = Duration::from_secs(20);

fn queue(bytes: usize) -> (Sender, Receiver) {
    messages::channel(bytes).expect("the system maps")
}

/// A message: its producer, its index there, and bytes of these.
fn write(slot: &mut [u8], producer: u64, index: u64) {
    slot[..8].copy_from_slice(&producer.to_le_bytes());
    slot[8..16].copy_from_slice(&index.to_le_bytes());
    pattern::fill(&mut slot[16..], producer << 32 | index, 0);
}

/// Producer and index of a message, whose bytes are checked.
fn read(message: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().expect("eight"));
    let (producer, index) = (number(0), number(8));
    pattern::check(&message[16..], producer << 32 | index, 0);
    (producer, index)
}

/// A number of producers and consumers, in all the ways to send and to receive, through a queue of
/// `bytes`; messages of 16 to `longest`.
fn crowd(bytes: usize, producers: u64, consumers: usize, longest: usize, count: usize) {
    let (sender, receiver) = queue(bytes);
    let seen = Mutex::new(Vec::new());
    let counts: Vec<u64> = thread::scope(|scope| {
        for producer in 0..producers {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut bytes = vec![0; longest];
                for index in 0..count as u64 {
                    let len = 16 + (index * 7919 + producer * 31) as usize % (longest - 15);
                    let message = &mut bytes[..len];
                    match index % 3 {
                        0 => {
                            write(message, producer, index);
                            sender.send(message).map(drop).expect("open");
                        }
                        1 => {
                            let written = sender.send_with(len, |slot| write(slot, producer, index));
                            written.map(drop).expect("open");
                        }
                        _ => {
                            write(message, producer, index);
                            while let Err(error) = sender.try_send(message) {
                                assert!(matches!(error, SendError::Full { .. }), "{error}");
                                thread::yield_now();
                            }
                        }
                    }
                }
            });
        }
        drop(sender);
        let consumers: Vec<_> = (0..consumers)
            .map(|consumer| {
                let (receiver, seen) = (receiver.clone(), &seen);
                scope.spawn(move || {
                    let mut into = vec![0; longest];
                    let mut last = vec![None; producers as usize];
                    let mut found = Vec::new();
                    loop {
                        let (sequence, (producer, index)) = if consumer % 2 == 0 {
                            let Ok(message) = receiver.recv() else { break };
                            (message.sequence(), read(&message))
                        } else {
                            let Ok(received) = receiver.recv_into(&mut into) else { break };
                            (received.sequence, read(&into[..received.len]))
                        };
                        found.push(sequence);
                        let before = last[producer as usize].replace(index);
                        assert!(before < Some(index), "of {producer}: {index} after {before:?}");
                    }
                    assert!(found.is_sorted(), "each consumer gets them in order");
                    let count = found.len() as u64;
                    seen.lock().expect("nobody panics").extend(found);
                    count
                })
            })
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().expect("the bytes are right")).collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), producers * count as u64);
    let mut seen = seen.into_inner().expect("nobody panics");
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..producers * count as u64), "each number once, without a gap");
}

#[test]
fn one_to_one() {
    crowd(4096, 1, 1, 16, scaled(200_000));
    crowd(4096, 1, 1, 4088, scaled(100_000));
}

#[test]
fn one_to_eight() {
    crowd(64 << 10, 1, 8, 16, scaled(200_000));
    crowd(4096, 1, 8, 300, scaled(100_000));
}

#[test]
fn four_to_four() {
    crowd(4096, 4, 4, 100, scaled(50_000));
    crowd(16 << 10, 4, 4, 4096, scaled(50_000));
}

#[test]
fn eight_to_one() {
    crowd(4096, 8, 1, 1000, scaled(30_000));
}

#[test]
fn refusals() {
    assert_eq!(messages::channel(0).err(), Some(ConfigError::Zero { setting: "capacity" }));
    let settings = Builder::new().capacity(100).populate(true);
    let (sender, receiver) = settings.build_messages().expect("one page");
    let capacity = sender.capacity();
    assert!(capacity >= 100 && sender.max_message() == capacity - 8);
    let whole = vec![7; capacity - 8];
    let too_long = SendError::TooLong { requested: capacity - 7, limit: capacity - 8 };
    assert_eq!(sender.send(&vec![0; capacity - 7]), Err(too_long));
    assert_eq!(sender.send(&whole), Ok(0));
    assert_eq!(sender.try_send(b""), Err(SendError::Full { requested: 8, available: 0 }));
    assert_eq!(sender.send_timeout(b"", Duration::ZERO), Err(SendError::TimedOut));
    let needed = capacity - 8;
    let mut small = [0; 3];
    for _ in 0..3 {
        let too_small = RecvError::TooSmall { needed, available: 3 };
        assert_eq!(receiver.recv_into(&mut small), Err(too_small));
        assert_eq!(receiver.try_recv_into(&mut []), Err(RecvError::TooSmall { needed, available: 0 }));
    }
    assert_eq!(&*receiver.recv().expect("still there"), &whole);
    assert_eq!(receiver.try_recv_into(&mut small), Err(RecvError::Empty));
    assert_eq!(sender.send(b""), Ok(1), "an empty message is one");
    assert_eq!(receiver.recv_into(&mut []).map(|received| (received.len, received.sequence)), Ok((0, 1)));
}

/// Every way to send, with room, without it until the time is over, and after the end.
#[test]
fn every_way_to_send() {
    type Way<'a> = &'a dyn Fn() -> Result<u64, SendError>;
    let (sender, receiver) = queue(4096);
    let parts = [IoSlice::new(b"in "), IoSlice::new(b""), IoSlice::new(b"parts")];
    let write = |slot: &mut [u8]| slot.copy_from_slice(b"written");
    let ways: [(Way<'_>, &[u8]); 5] = [
        (&|| sender.send_vectored(&parts), b"in parts"),
        (&|| sender.try_send_vectored(&parts), b"in parts"),
        (&|| sender.send_timeout(b"in time", NAP), b"in time"),
        (&|| sender.send_with(7, write), b"written"),
        (&|| sender.try_send_with(7, write), b"written"),
    ];
    for (number, (send, bytes)) in ways.iter().enumerate() {
        assert_eq!(send(), Ok(number as u64));
        assert_eq!(&*receiver.recv().expect("it was sent"), *bytes);
    }
    assert_eq!(receiver.max_message(), sender.max_message());
    while sender.try_send(&[0; 16]).is_ok() {}
    while sender.try_send(b"").is_ok() {}
    let start = Instant::now();
    assert_eq!((ways[2].0)(), Err(SendError::TimedOut));
    assert!(start.elapsed() >= NAP);
    for way in [1, 4] {
        assert_eq!((ways[way].0)(), Err(SendError::Full { requested: 16, available: 0 }));
    }
    assert!(!sender.is_closed() && !receiver.is_closed());
    sender.close();
    assert!(sender.is_closed() && receiver.is_closed());
    for (send, _) in ways {
        assert_eq!(send(), Err(SendError::Closed));
    }
    let too_long = sender.max_message() + 1;
    let never = |_: &mut [u8]| -> usize { panic!("there is no such room") };
    let refused = SendError::TooLong { requested: too_long, limit: too_long - 1 };
    assert_eq!(sender.try_send_with(too_long, never), Err(refused));
    assert_eq!(crate::waits::block_on(sender.send_async(&vec![0; too_long])), Err(refused));
}

/// A thread that has sent a message finds one, and one that has received a message finds its room:
/// crossbeam's test of its channels.
#[test]
fn linearizable() {
    const THREADS: usize = 4;
    for (len, count) in [(8_usize, 200_000), (256, 100_000), (257, 100_000), (100_000, 50_000)] {
        let frame = 8 + len.next_multiple_of(8);
        let (sender, receiver) = queue(THREADS * 3 * frame);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let message = vec![7; len];
                    let mut into = vec![0; len];
                    for number in 0..scaled(count) {
                        if number % 2 == 0 {
                            sender.try_send(&message).expect("there is room for three of each");
                        } else {
                            sender.try_send_many(&[&message[..], &message]).expect("there is room");
                            receiver.try_recv_into(&mut into).expect("each thread has sent two");
                        }
                        receiver.try_recv_into(&mut into).expect("each thread has sent one");
                    }
                });
            }
        });
    }
}

#[test]
fn time_is_over() {
    let (sender, receiver) = queue(4096);
    let start = Instant::now();
    assert_eq!(receiver.recv_timeout(NAP).err(), Some(RecvError::TimedOut));
    while sender.try_send(&[0; 100]).is_ok() {}
    assert_eq!(sender.send_timeout(&[0; 100], NAP), Err(SendError::TimedOut));
    assert!(start.elapsed() >= 2 * NAP);
    assert!(sender.send_timeout(b"", NAP).is_ok(), "there is room for less");
}

/// Those who time out take no wake-up with them.
#[test]
fn time_outs_among_sleepers() {
    let (sender, receiver) = queue(4096);
    let received = AtomicUsize::new(0);
    let total = scaled(20_000);
    thread::scope(|scope| {
        for consumer in 0..4 {
            let (receiver, received) = (receiver.clone(), &received);
            scope.spawn(move || {
                loop {
                    // ORDER: Relaxed: read when all have ended.
                    match receiver.recv_timeout(Duration::from_micros(20 + consumer)) {
                        Ok(_) => drop(received.fetch_add(1, Relaxed)),
                        Err(RecvError::TimedOut) => {}
                        Err(_) => return,
                    }
                }
            });
        }
        let received = &received;
        let forever = receiver.clone();
        scope.spawn(move || {
            while forever.recv().is_ok() {
                // ORDER: Relaxed, as above.
                received.fetch_add(1, Relaxed);
            }
        });
        for index in 0..total {
            sender.send(&[0; 50]).map(drop).expect("open");
            if index % 16 == 0 {
                thread::sleep(Duration::from_micros(30));
            }
        }
        drop(sender);
    });
    assert_eq!(received.into_inner(), total);
}

#[test]
fn closing_wakes_receivers() {
    let (sender, receiver) = queue(4096);
    sender.send(b"left").map(drop).expect("open");
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..4)
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || {
                    let mut count = 0;
                    loop {
                        match receiver.recv_timeout(LONG) {
                            Ok(_) => count += 1,
                            Err(error) => break assert_eq!(error, RecvError::Closed),
                        }
                    }
                    count
                })
            })
            .collect();
        thread::sleep(NAP);
        let closed = Instant::now();
        drop(sender);
        let received: usize = sleepers.into_iter().map(|sleeper| sleeper.join().expect("closed")).sum();
        assert_eq!(received, 1);
        assert!(closed.elapsed() < LONG / 2, "they are woken, and do not look at their deadlines only");
    });
    assert!(receiver.is_closed());
    assert_eq!(receiver.try_recv().err(), Some(RecvError::Closed));
}

#[test]
fn closing_wakes_senders() {
    let (sender, receiver) = queue(4096);
    while sender.try_send(&[0; 1000]).is_ok() {}
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..4)
            .map(|index| {
                let sender = sender.clone();
                scope.spawn(move || sender.send_timeout(&vec![0; 1000 * (index + 1)], LONG))
            })
            .collect();
        thread::sleep(NAP);
        let closed = Instant::now();
        drop(receiver);
        for sleeper in sleepers {
            assert_eq!(sleeper.join().expect("closed"), Err(SendError::Closed));
        }
        assert!(closed.elapsed() < LONG / 2, "they are woken, and do not look at their deadlines only");
    });
    assert_eq!(sender.send(b"late"), Err(SendError::Closed));
}

/// A message that was begun before the queue was closed is received.
#[test]
fn closed_while_it_is_written() {
    let (sender, receiver) = queue(4096);
    let (begun, closed) = (AtomicBool::new(false), AtomicBool::new(false));
    let until = |flag: &AtomicBool| {
        // ORDER: Relaxed: it only says when.
        while !flag.load(Relaxed) {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let sent = sender.send_with(4, |slot| {
                // ORDER: Relaxed, as above.
                begun.store(true, Relaxed);
                until(&closed);
                slot.copy_from_slice(b"late");
            });
            assert_eq!(sent, Ok(0));
        });
        until(&begun);
        receiver.close();
        let meanwhile = (receiver.try_recv().err(), sender.send(b"too late"));
        // ORDER: Relaxed, as above.
        closed.store(true, Relaxed);
        assert_eq!(meanwhile, (Some(RecvError::Empty), Err(SendError::Closed)), "one is to come");
        assert_eq!(&*receiver.recv().expect("it was begun before"), b"late");
        assert_eq!(receiver.recv().err(), Some(RecvError::Closed));
    });
}

#[test]
fn a_panic_leaves_a_gap() {
    let (sender, receiver) = queue(4096);
    for long in [10, 1000] {
        assert!(sender.send(b"before").is_ok());
        let run = AssertUnwindSafe(|| {
            sender.send_with(long, |slot| -> usize {
                slot[0] = 1;
                panic::resume_unwind(Box::new(()))
            })
        });
        assert!(panic::catch_unwind(run).is_err());
        assert!(sender.send(b"after").is_ok());
    }
    let found: Vec<_> = (0..4)
        .map(|_| {
            receiver.recv().map(|message| (message.sequence(), message.to_vec())).expect("four are left")
        })
        .collect();
    let wanted = [(0, "before"), (2, "after"), (3, "before"), (5, "after")];
    assert!(
        found.iter().map(|(number, bytes)| (*number, &bytes[..])).eq(wanted.map(|(n, b)| (n, b.as_bytes())))
    );
    assert_eq!(receiver.try_recv().err(), Some(RecvError::Empty));
    // And their places are free again.
    assert!(sender.try_send(&vec![0; sender.max_message()]).is_ok());
}

/// A sender that sleeps is woken by the room of what was abandoned alone.
#[test]
fn what_was_abandoned_makes_room() {
    let (sender, receiver) = queue(4096);
    let max = sender.max_message();
    let run = AssertUnwindSafe(|| sender.send_with(max, |_| -> usize { panic::resume_unwind(Box::new(())) }));
    assert!(panic::catch_unwind(run).is_err());
    thread::scope(|scope| {
        let waits = scope.spawn(|| sender.send(&vec![1; max]));
        thread::sleep(NAP);
        assert_eq!(receiver.recv().expect("it has room now").len(), max);
        assert_eq!(waits.join().expect("woken"), Ok(1));
    });
}

#[test]
fn a_forgotten_message() {
    let (sender, receiver) = queue(4096);
    let capacity = sender.capacity();
    assert!(sender.send(&[1; 92]).is_ok());
    core::mem::forget(receiver.recv().expect("sent"));
    // Others go on, up to where the ring comes round to it: 104 bytes were taken.
    let mut sent = 0;
    while sender.try_send(&[2; 92]).is_ok() {
        assert_eq!(&*receiver.recv().expect("sent"), &[2; 92]);
        sent += 1;
    }
    assert_eq!(sent, capacity / 104 - 1);
    assert_eq!(sender.send_timeout(&[2; 92], NAP), Err(SendError::TimedOut));
    assert_eq!(receiver.try_recv().err(), Some(RecvError::Empty));
    drop(sender);
    assert_eq!(receiver.recv().err(), Some(RecvError::Closed));
}

#[test]
fn dropped_elsewhere_and_in_unwinding() {
    let (sender, receiver) = queue(4096);
    for round in 0..100 {
        let mut bytes = vec![0; 1300];
        write(&mut bytes, 3, round);
        assert!(sender.send(&bytes).is_ok() && sender.send(&bytes).is_ok());
        let (first, second) = (receiver.recv().expect("sent"), receiver.recv().expect("sent"));
        thread::scope(|scope| {
            let elsewhere = scope.spawn(move || assert_eq!(read(&second), (3, round)));
            elsewhere.join().expect("the bytes are right");
            let panics = scope.spawn(move || {
                assert_eq!(read(&first), (3, round));
                panic::resume_unwind(Box::new(()))
            });
            assert!(panics.join().is_err());
        });
    }
    assert!(sender.try_send(&vec![0; sender.max_message()]).is_ok(), "all places are free");
}

/// Messages that are kept are completed in any order, and wake who waits for all the room.
#[test]
fn completed_in_any_order() {
    let (sender, receiver) = queue(4096);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        for number in 0..4_u8 {
            assert!(sender.send(&[number; 300]).is_ok());
        }
        let mut kept: Vec<_> = (0..4).map(|_| receiver.recv().ok()).collect();
        thread::scope(|scope| {
            let waits = scope.spawn(|| sender.send(&vec![9; sender.max_message()]));
            for index in order {
                thread::sleep(NAP / 10);
                assert!(!waits.is_finished());
                let message = kept[index].take().expect("once");
                assert_eq!(&*message, &[index as u8; 300]);
            }
            assert!(waits.join().expect("woken").is_ok());
        });
        drop(receiver.recv());
    }
}

/// Who needs much room gets it, though others who need little take all that becomes free.
#[test]
fn nobody_starves() {
    let (sender, receiver) = queue(4096);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (sender, over) = (sender.clone(), &over);
            scope.spawn(move || {
                // ORDER: Relaxed: it only says when.
                while !over.load(Relaxed) {
                    assert!(sender.send(&[0; 24]).is_ok());
                }
            });
        }
        let large = {
            let (sender, over) = (sender.clone(), &over);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert!(sender.send(&vec![1; sender.max_message()]).is_ok());
                }
                // ORDER: Relaxed, as above.
                over.store(true, Relaxed);
            })
        };
        drop(sender);
        let mut large_ones = 0;
        while let Ok(message) = receiver.recv() {
            large_ones += usize::from(message.len() > 24);
        }
        large.join().expect("served");
        assert_eq!(large_ones, 20);
    });
}

/// Ends go to other threads, and are used by several; so are messages, and the futures.
#[test]
fn everything_may_move() {
    fn moves<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync>(_: &T) {}
    let (sender, receiver) = queue(4096);
    is_shared(&sender);
    is_shared(&receiver);
    moves(&sender.send_async(b""));
    moves(&receiver.recv_async());
    assert!(sender.send(b"").is_ok());
    is_shared(&receiver.recv().expect("sent"));
}

struct Flag(AtomicUsize);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        // ORDER: Relaxed: one thread.
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn tasks() {
    let (sender, receiver) = queue(4096);
    let flags = [0; 2].map(|_| Arc::new(Flag(AtomicUsize::new(0))));
    let wakers = [0, 1].map(|index| Waker::from(Arc::clone(&flags[index])));
    // ORDER: Relaxed: one thread.
    let woken = || [0, 1].map(|index| flags[index].0.load(Relaxed));
    let mut contexts = [0, 1].map(|index| Context::from_waker(&wakers[index]));
    {
        let (mut first, mut second) = (Box::pin(receiver.recv_async()), pin!(receiver.recv_async()));
        assert!(first.as_mut().poll(&mut contexts[0]).is_pending());
        assert!(second.as_mut().poll(&mut contexts[1]).is_pending());
        assert!(sender.send(b"one").is_ok());
        assert_eq!(woken(), [1, 0], "one for one message");
        // Dropped, it passes on what it was woken for.
        drop(first);
        assert_eq!(woken(), [1, 1]);
        assert!(sender.send(b"two").is_ok());
        assert_eq!(woken(), [1, 1], "nobody sleeps");
        let Poll::Ready(message) = second.as_mut().poll(&mut contexts[1]) else { panic!("was woken") };
        assert_eq!(&*message.expect("open"), b"one");
    }
    assert_eq!(&*receiver.recv().expect("sent"), b"two");
    while sender.try_send(&[0; 1000]).is_ok() {}
    let (wide, narrow) = ([3; 3000], [1; 1000]);
    let mut large = Box::pin(sender.send_async(&wide));
    let mut small = pin!(sender.send_async(&narrow));
    assert!(large.as_mut().poll(&mut contexts[0]).is_pending());
    assert!(small.as_mut().poll(&mut contexts[1]).is_pending());
    drop(receiver.recv());
    assert_eq!(woken(), [1, 1], "not enough for the first");
    drop(large);
    assert_eq!(woken(), [1, 2], "enough for the next");
    assert!(matches!(small.as_mut().poll(&mut contexts[1]), Poll::Ready(Ok(_))));
}

/// Of every room and every length that is written of it, both ways out; the numbers go on one by
/// one.
#[test]
fn messages_that_become_shorter() {
    let (sender, receiver) = queue(1);
    let mut number = 0;
    let mut into = [0; 40];
    for max in 0..40 {
        for len in 0..=max {
            let write = |room: &mut [u8]| {
                assert_eq!(room.len(), max);
                room.fill(0xFF);
                pattern::fill(&mut room[..len], number, 0);
                len
            };
            assert_eq!(sender.send_with(max, write), Ok(number));
            assert_eq!(sender.send(b"behind it"), Ok(number + 1));
            if number % 4 == 0 {
                let message = receiver.try_recv().expect("sent");
                assert_eq!((message.len(), message.sequence()), (len, number));
                pattern::check(&message, number, 0);
            } else {
                let received = receiver.try_recv_into(&mut into).expect("sent");
                assert_eq!((received.len, received.sequence), (len, number));
                pattern::check(&into[..len], number, 0);
            }
            assert_eq!(&*receiver.try_recv().expect("sent"), b"behind it");
            number += 2;
        }
    }
    assert_eq!(receiver.try_recv().err(), Some(RecvError::Empty));
    assert!(sender.try_send(&vec![0; sender.max_message()]).is_ok(), "all room is free again");
}

#[test]
fn no_more_is_sent_than_there_was_room_for() {
    let (sender, receiver) = queue(4096);
    let run = AssertUnwindSafe(|| sender.send_with(8, |room| room.len() + 1));
    assert!(panic::catch_unwind(run).is_err());
    assert!(sender.send(b"after").is_ok());
    let message = receiver.recv().expect("it was not held up");
    assert_eq!((&*message, message.sequence()), (&b"after"[..], 1));
    let error = sender.try_send_with(sender.max_message(), |_| -> usize { unreachable!("no room") });
    assert!(matches!(error, Err(SendError::Full { .. })));
    let limit = sender.max_message();
    let error = sender.send_with(limit + 1, |_| -> usize { unreachable!("never any room") });
    assert_eq!(error, Err(SendError::TooLong { requested: limit + 1, limit }));
    assert_eq!(sender.send_with(100, |_| 0), Ok(2));
}

/// The documentation of `RecvError::Empty`: later messages are not received before an earlier one is
/// written, although their `send` has returned.
#[test]
fn a_queue_reads_as_empty_behind_a_message_that_is_being_written() {
    for len in [0, 1, 255, 256, 257, 1000] {
        let (sender, receiver) = queue(4096);
        let write = |room: &mut [u8]| {
            assert_eq!(sender.send(&vec![7; len]), Ok(1));
            assert_eq!(receiver.try_recv().err(), Some(RecvError::Empty));
            assert_eq!(receiver.try_recv_into(&mut [0; 1000]), Err(RecvError::Empty));
            assert_eq!(receiver.recv_timeout(NAP).err(), Some(RecvError::TimedOut));
            room.copy_from_slice(b"early");
        };
        assert_eq!(sender.send_with(5, write), Ok(0));
        assert_eq!(&*receiver.try_recv().unwrap(), b"early");
        assert_eq!(*receiver.try_recv().unwrap(), vec![7; len]);
    }
}

/// The documentation of `SendError::Full`: the room of later messages is not free before an earlier
/// one is dropped, although they were received.
#[test]
fn a_queue_reads_as_full_behind_a_message_that_is_held() {
    for len in [255, 256, 257, 1000] {
        let (sender, receiver) = queue(4096);
        let message = vec![7; len];
        while sender.try_send(&message).is_ok() {}
        let held = receiver.recv().unwrap();
        while receiver.try_recv_into(&mut [0; 1000]).is_ok() {}
        assert!(matches!(sender.try_send(&message), Err(SendError::Full { .. })));
        assert_eq!(sender.send_timeout(&message, NAP), Err(SendError::TimedOut));
        drop(held);
        assert!(sender.try_send(&vec![7; sender.max_message()]).is_ok(), "all is free");
    }
}

/// Up to 256 bytes are copied under the lock: where all messages are as short, and none is written in
/// place, what was sent can be received.
#[test]
fn short_messages_that_were_sent_are_never_missing() {
    const LEN: usize = 256;
    let rounds = scaled(2_000_000);
    let (sender, receiver) = queue(1 << 16);
    let missing: usize = thread::scope(|scope| {
        let exchange = || {
            let one_missing = |_: &usize| {
                sender.send(&[7; LEN]).unwrap();
                receiver.try_recv().is_err()
            };
            (0..rounds).filter(one_missing).count()
        };
        let threads = [(); 3].map(|()| scope.spawn(exchange));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(missing, 0, "of {}", 3 * rounds);
}
