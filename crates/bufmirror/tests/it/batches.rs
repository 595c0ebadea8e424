//! Batches of messages: one lock, and all of them or none.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use bufmirror::messages::{self, Receiver, RecvError, SendError, Sender};
use testkit::trials::scaled;

use crate::waits::block_on;

const NAP: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(20);

fn queue() -> (Sender, Receiver) {
    messages::channel(4096).expect("a small ring can be mapped")
}

#[test]
fn every_way_to_send_and_receive_a_batch() {
    let (sender, receiver) = queue();
    let batch: [&[u8]; 3] = [b"first", b"", &[7; 500]];
    let sent: [&dyn Fn() -> Result<std::ops::Range<u64>, SendError>; 4] = [
        &|| sender.send_many(&batch),
        &|| sender.try_send_many(&batch),
        &|| sender.send_many_timeout(&batch, NAP),
        &|| block_on(sender.send_many_async(&batch)),
    ];
    for (number, send) in (0..).step_by(3).zip(sent) {
        assert_eq!(send(), Ok(number..number + 3));
    }
    let received = [
        receiver.recv_many(3),
        receiver.try_recv_many(3),
        receiver.recv_many_timeout(3, NAP),
        block_on(receiver.recv_many_async(3)),
    ];
    for (number, received) in (0..).step_by(3).zip(received) {
        let received = received.expect("there are three");
        assert_eq!(received.sequence(), number);
        assert!(received.iter().eq(batch));
    }
    assert_eq!(sender.try_send_many(&[]), Ok(0..0));
    assert_eq!(receiver.try_recv_many(3).unwrap_err(), RecvError::Empty);
    assert_eq!(receiver.recv_many_timeout(3, NAP).unwrap_err(), RecvError::TimedOut);
    drop(receiver);
    for send in sent {
        assert_eq!(send(), Err(SendError::Closed));
    }
    assert_eq!(sender.send_many(&[]), Ok(0..0), "nothing is refused");
}

/// Messages that are the same bytes, so that no number has the sum of their lengths.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[test]
fn batches_of_more_bytes_than_a_number_has() {
    const LEN: usize = 1 << 46;
    // SAFETY: a new mapping, which nothing writes, of pages that are zero and take no memory.
    let bytes = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), LEN, libc::PROT_READ, flags, -1, 0)
    };
    if bytes == libc::MAP_FAILED {
        eprintln!("skipped: the addresses of this process are limited");
        return;
    }
    // SAFETY: mapped above, readable, and never unmapped before it is last used.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), LEN) };
    let batch = vec![bytes; 1 << 18];
    let (sender, _receiver) = queue();
    let refused = Err(SendError::TooLong { requested: usize::MAX, limit: sender.capacity() - 8 });
    assert_eq!(sender.try_send_many(&batch), refused);
    assert_eq!(sender.send_many(&batch), refused);
    assert_eq!(block_on(sender.send_many_async(&batch)), refused);
    // SAFETY: as it was mapped; `batch` is not used any more.
    assert_eq!(unsafe { libc::munmap(bytes.as_ptr().cast_mut().cast(), LEN) }, 0);
}

/// A batch that does not fit is refused whole, now or for ever.
#[test]
fn all_or_none() {
    let (sender, receiver) = queue();
    let capacity = sender.capacity();
    // Frames of 8 and 120 bytes.
    let count = capacity as u64 / 128;
    let fits = vec![&[7; 120][..]; capacity / 128];
    assert_eq!(sender.try_send_many(&fits), Ok(0..count));
    assert_eq!(receiver.recv_many(usize::MAX).expect("they came").iter().len(), fits.len());
    let longer: Vec<_> = fits.iter().copied().chain([&b""[..]]).collect();
    let refused = SendError::TooLong { requested: capacity, limit: capacity - 8 };
    assert_eq!(sender.send_many(&longer), Err(refused));
    sender.try_send(b"").expect("there is room");
    let full = SendError::Full { requested: capacity, available: capacity - 8 };
    assert_eq!(sender.try_send_many(&fits), Err(full));
    assert_eq!(sender.send_many_timeout(&fits, NAP), Err(SendError::TimedOut));
    let mut waiting = pin!(sender.send_many_async(&fits));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(receiver.try_recv_many(9).expect("one came").iter().len(), 1);
    assert_eq!(receiver.try_recv().unwrap_err(), RecvError::Empty);
    let sent = Poll::Ready(Ok(count + 1..2 * count + 1));
    assert_eq!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())), sent);
}

/// What is in a batch and not read is not received by others, and its room is free with the drop.
#[test]
fn a_batch_is_received_whole() {
    let (sender, receiver) = queue();
    // Four of them fill the queue.
    let message = vec![7; sender.capacity() / 4 - 8];
    sender.send_many(&[&message[..]; 4]).expect("open");
    let batch = receiver.try_recv_many(3).expect("they came");
    assert_eq!(batch.iter().next(), Some(&message[..]));
    assert_eq!(receiver.try_recv().expect("one is left").sequence(), 3);
    assert!(sender.try_send(&message).is_err(), "the last one is free after the batch");
    drop(batch);
    assert!(sender.try_send_many(&[&message[..]; 4]).is_ok());
}

/// Messages of a writer that panicked, in front of a batch, in it, and behind it.
#[test]
fn a_batch_without_messages_that_were_not_written() {
    let (sender, receiver) = queue();
    let panics = || {
        let write = |_: &mut [u8]| -> usize { std::panic::resume_unwind(Box::new(())) };
        let send = std::panic::AssertUnwindSafe(|| sender.try_send_with(10, write));
        assert!(std::panic::catch_unwind(send).is_err());
    };
    for message in [&b"a"[..], b"b", b"c"] {
        panics();
        sender
            .try_send_with(100, |room| {
                room[..1].copy_from_slice(message);
                1
            })
            .expect("there is room");
    }
    panics();
    let batch = receiver.try_recv_many(usize::MAX).expect("they came");
    assert!(batch.iter().eq([b"a", b"b", b"c"]));
    assert_eq!(batch.sequence(), 1);
    drop(batch);
    assert_eq!(sender.try_send(&[7; 4088]), Ok(7), "all is free");
}

fn message(producer: u8, batch: u64, index: u64) -> [u8; 9] {
    let mut bytes = [producer, index as u8, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..].copy_from_slice(&batch.to_le_bytes()[..7]);
    bytes
}

/// Producers and consumers of batches: each batch arrives in one piece, each producer's in order.
#[test]
fn batches_in_a_crowd() {
    const PRODUCERS: u8 = 3;
    let (sender, receiver) = queue();
    let batches = scaled(3000);
    let mut received: Vec<(u64, [u8; 9])> = thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let sender = sender.clone();
            scope.spawn(move || {
                for batch in 0..batches as u64 {
                    let len = 1 + batch % 7;
                    let all: Vec<_> = (0..len).map(|index| message(producer, batch, index)).collect();
                    let all: Vec<_> = all.iter().map(|message| &message[..]).collect();
                    sender.send_many(&all).expect("open");
                }
            });
        }
        drop(sender);
        let consumers = [1, 3, 100].map(|max| {
            let receiver = &receiver;
            scope.spawn(move || {
                let mut seen = Vec::new();
                while let Ok(batch) = receiver.recv_many_timeout(max, LONG) {
                    let numbers = batch.sequence()..;
                    seen.extend(
                        numbers.zip(batch.iter().map(|message| message.try_into().expect("nine bytes"))),
                    );
                }
                assert_eq!(receiver.recv_many(max).unwrap_err(), RecvError::Closed);
                seen
            })
        });
        consumers.into_iter().flat_map(|consumer| consumer.join().expect("all came")).collect()
    });
    received.sort_unstable();
    let mut next = [0; PRODUCERS as usize];
    let mut at = 0;
    while let Some(&(_, [producer, ..])) = received.get(at) {
        let batch = next[usize::from(producer)];
        next[usize::from(producer)] += 1;
        for index in 0..1 + batch % 7 {
            assert_eq!(received[at], (at as u64, message(producer, batch, index)));
            at += 1;
        }
    }
    assert_eq!(next, [batches as u64; PRODUCERS as usize]);
}
