//! T25: a system that is hostile to channels, queues and shared rings: calls that it refuses,
//! signals amid traffic, an address space that is used up.

use std::time::{Duration, Instant};

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use bufmirror::{Consumer, MirrorRing, Producer, RegionError, WaitError};
use testkit::errands::Errands;
use testkit::process::{self, alone};
use testkit::sandbox;

use crate::waits::block_on;

const LIMIT: Duration = Duration::from_secs(60);
/// Until something times out.
const SHORT: Duration = Duration::from_millis(12);
/// Through a ring of one page, so that both sides sleep.
const PIECES: u16 = 60;

fn queue() -> (Sender, Receiver) {
    messages::channel(4096).expect("the system maps")
}

fn channel() -> (Producer, Consumer) {
    bufmirror::channel(4096).expect("the system maps")
}

/// The bytes of a piece, which differ in length.
fn piece(at: u16) -> Vec<u8> {
    let len = 1 + usize::from(at) * 331 % 3000;
    vec![at as u8; len]
}

/// Sends all pieces from `there`, and waits here for each, as a thread and as a task, up to the
/// channel's end.
fn stream((mut producer, mut consumer): (Producer, Consumer), there: &Errands) {
    let sent = there.start(move || {
        for at in 0..PIECES {
            let piece = piece(at);
            if at % 2 == 0 {
                producer.wait(piece.len()).expect("the consumer lives");
            } else {
                block_on(producer.wait_async(piece.len())).expect("the consumer lives");
            }
            producer.put(&piece).expect("waited for");
        }
    });
    for at in 0..PIECES {
        let piece = piece(at);
        match at % 3 {
            0 => consumer.wait(piece.len()),
            1 => consumer.wait_timeout(piece.len(), LIMIT),
            _ => block_on(consumer.wait_async(piece.len())),
        }
        .expect("more is to come");
        assert_eq!(consumer.peek_exact(piece.len()), Some(&piece[..]), "piece {at}");
        consumer.consume(piece.len());
    }
    sent.wait();
    assert_eq!(consumer.wait(1), Err(WaitError::Closed { requested: 1, available: 0 }));
}

/// The same with messages, in all ways to send and to receive.
fn messages((sender, receiver): (Sender, Receiver), there: &Errands) {
    let sent = there.start(move || {
        for at in 0..PIECES {
            let mut piece = piece(at);
            piece.truncate(sender.max_message());
            let sent = match at % 4 {
                0 => sender.send(&piece),
                1 => sender.send_timeout(&piece, LIMIT),
                2 => sender.send_with(piece.len(), |room| room.copy_from_slice(&piece)),
                _ => block_on(sender.send_async(&piece)),
            };
            assert_eq!(sent, Ok(u64::from(at)));
        }
    });
    for at in 0..PIECES {
        let message = match at % 3 {
            0 => receiver.recv(),
            1 => receiver.recv_timeout(LIMIT),
            _ => block_on(receiver.recv_async()),
        };
        let message = message.expect("more is to come");
        let mut piece = piece(at);
        piece.truncate(receiver.max_message());
        assert_eq!(message[..], piece[..], "message {at}");
    }
    sent.wait();
    assert_eq!(receiver.recv().map(drop), Err(RecvError::Closed));
}

/// Waits that nobody ends: they last as long as they should, and no longer.
fn timeouts() {
    let took = |wait: &mut dyn FnMut()| {
        let began = Instant::now();
        wait();
        let took = began.elapsed();
        assert!((SHORT..LIMIT / 4).contains(&took), "{took:?}");
    };
    let (mut producer, mut consumer) = channel();
    took(&mut || {
        let timed_out = Err(WaitError::TimedOut { requested: 1, available: 0 });
        assert_eq!(consumer.wait_timeout(1, SHORT), timed_out);
    });
    let capacity = producer.capacity();
    producer.put(&vec![1; capacity]).expect("all is free");
    took(&mut || assert!(matches!(producer.wait_timeout(1, SHORT), Err(WaitError::TimedOut { .. }))));
    let (sender, receiver) = queue();
    took(&mut || assert_eq!(receiver.recv_timeout(SHORT).map(drop), Err(RecvError::TimedOut)));
    while sender.try_send(&[1; 500]).is_ok() {}
    took(&mut || assert_eq!(sender.send_timeout(&[1; 500], SHORT), Err(SendError::TimedOut)));
    drop((producer, consumer));
}

/// A ring that could be another process's.
#[cfg(target_pointer_width = "64")]
fn shared(there: &Errands) {
    use std::io::Read;

    let ring = bufmirror::SharedRing::create(4096).expect("the system maps");
    let (mut producer, mut consumer) = (ring.producer().expect("free"), ring.consumer().expect("free"));
    let began = Instant::now();
    assert!(matches!(consumer.wait_timeout(1, SHORT), Err(WaitError::TimedOut { .. })));
    assert!(began.elapsed() >= SHORT, "{:?} of {SHORT:?}", began.elapsed());
    let sent = there.start(move || {
        for at in 0..PIECES {
            let piece = piece(at);
            producer.wait(piece.len()).expect("the consumer lives");
            producer.put(&piece).expect("waited for");
        }
    });
    for at in 0..PIECES {
        let mut found = piece(at);
        found.fill(0);
        consumer.read_exact(&mut found).expect("a signal is no error");
        assert_eq!(found, piece(at));
    }
    sent.wait();
    assert!(matches!(consumer.wait(1), Err(WaitError::Closed { .. })));
}

/// One call after another is refused after a channel and a queue were made and used. Traffic and
/// waits go on, and ends go; a new ring is there, or an error that names the call.
#[test]
fn t25_refused_calls() {
    let calls = [
        ("membarrier", libc::SYS_membarrier),
        ("mmap", sandbox::MMAP),
        ("munmap", libc::SYS_munmap),
        ("madvise", libc::SYS_madvise),
        ("memfd_create", libc::SYS_memfd_create),
        ("ftruncate", libc::SYS_ftruncate),
        ("futex", libc::SYS_futex),
        ("sched_yield", libc::SYS_sched_yield),
    ];
    alone(module_path!(), "t25_refused_calls", LIMIT, || {
        let make = || (channel(), channel(), queue(), queue());
        sandbox::each_refused(&calls, LIMIT / 4, make, |name, (first, second, third, fourth), begin| {
            let there = Errands::new();
            stream(first, &there);
            messages(third, &there);
            begin();
            stream(second, &there);
            messages(fourth, &there);
            match MirrorRing::new(4096) {
                Ok(mut ring) => ring.put(b"all of it").expect("room"),
                Err(error) => {
                    assert_eq!(error, RegionError::Refused { call: name, errno: libc::EPERM }.into());
                }
            }
            // The standard library's, and the C library's, ends of threads need these two.
            if !["futex", "munmap"].contains(&name) {
                there.end();
            }
        });
    });
}

/// A signal comes to each thread every millisecond. Nothing is lost, no wait ends early or late,
/// and no signal is an error.
#[test]
fn t25_signals() {
    alone(module_path!(), "t25_signals", LIMIT, || {
        let there = Errands::new();
        sandbox::signalled(50, || {
            stream(channel(), &there);
            messages(queue(), &there);
            timeouts();
            #[cfg(target_pointer_width = "64")]
            shared(&there);
        });
        there.end();
    });
}

/// No address is left amid traffic. What was made before continues, with waits of threads and
/// tasks; a new ring is an error, until there is room again.
#[test]
fn t25_no_address_space() {
    const LARGE: usize = 64 << 20;

    alone(module_path!(), "t25_no_address_space", LIMIT, || {
        let (there, beside) = (Errands::new(), Errands::new());
        stream(channel(), &there);
        messages(queue(), &there);
        beside.run(|| ());
        let busy = (channel(), queue());
        let made = (channel(), queue());
        let more = Errands::new();
        more.run(|| ());
        let left = (process::address_space_bytes() + LARGE / 8) as u64;
        process::limited(libc::RLIMIT_AS, left, || {
            let other = beside.start(move || {
                stream(busy.0, &more);
                messages(busy.1, &more);
            });
            for _ in 0..50 {
                let error = MirrorRing::new(LARGE).expect_err("over the limit");
                assert_eq!(error, RegionError::Refused { call: "mmap", errno: libc::ENOMEM }.into());
                assert!(bufmirror::channel(LARGE).is_err() && messages::channel(LARGE).is_err());
            }
            stream(made.0, &there);
            messages(made.1, &there);
            other.wait();
        });
        assert_eq!(crate::mapped(LARGE).capacity(), LARGE);
        there.end();
        beside.end();
    });
}
