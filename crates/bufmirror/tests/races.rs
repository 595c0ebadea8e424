//! What hands bytes from thread to thread, for ThreadSanitizer: without the test harness, whose
//! locks it does not see in a precompiled standard library.
//!
//! ThreadSanitizer takes the two addresses of a byte for two bytes, so the traffic keeps in front
//! of the border where it can: there both ends use one address. Without a sanitizer the programs
//! run as well, and check the bytes. Like a test harness, takes `--exact NAME` for one of them.

use std::thread;

use bufmirror::messages;
use testkit::trials::scaled;
use testkit::{pattern, races};

/// Words from one thread to the other; `looks` how an end waits.
fn channel(sleeps: bool) {
    const WORD: usize = 8;
    let (mut producer, mut consumer) = bufmirror::channel(4096).expect("the system maps");
    let words = scaled(5_000_000) as u64;
    let writer = thread::spawn(move || {
        for word in 0..words {
            while producer.put(&word.to_ne_bytes()).is_err() {
                if sleeps {
                    producer.wait(WORD).expect("the consumer lives");
                } else {
                    thread::yield_now();
                }
            }
        }
    });
    for word in 0..words {
        let mut found = [0; WORD];
        while consumer.get(&mut found).is_err() {
            if sleeps {
                consumer.wait(WORD).expect("more is to come");
            } else {
                thread::yield_now();
            }
        }
        assert_eq!(u64::from_ne_bytes(found), word);
    }
    writer.join().expect("all was taken");
}

/// Words through a static channel. Threads of a scope would do, but the sanitizer does not see what orders the
/// end of a scope.
fn static_channel() {
    const WORD: usize = 8;
    let place = Box::into_raw(Box::new(bufmirror::StaticChannel::<256>::new()));
    // SAFETY: just made, and nobody else has it until both ends are gone, below.
    let (mut producer, mut consumer) = unsafe { &mut *place }.ends();
    let words = scaled(2_000_000) as u64;
    let writer = thread::spawn(move || {
        for word in 0..words {
            while producer.put(&word.to_ne_bytes()).is_err() {
                thread::yield_now();
            }
        }
    });
    for word in 0..words {
        let mut found = [0; WORD];
        while consumer.get(&mut found).is_err() {
            thread::yield_now();
        }
        assert_eq!(u64::from_ne_bytes(found), word);
    }
    writer.join().expect("it only writes");
    drop(consumer);
    // SAFETY: of `into_raw` above, and both ends are gone.
    drop(unsafe { Box::from_raw(place) });
}

/// A number of producers and consumers; each message's bytes are those of its length.
fn messages(bytes: usize, producers: usize, consumers: usize, longest: usize) {
    let (sender, receiver) = messages::channel(bytes).expect("the system maps");
    let count = scaled(200_000) / producers;
    let senders: Vec<_> = (0..producers)
        .map(|producer| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut bytes = vec![0; longest];
                for index in 0..count {
                    let len = (index * 7919 + producer * 31) % (longest + 1);
                    let sent = if index % 2 == 0 {
                        pattern::fill(&mut bytes[..len], len as u64, 0);
                        sender.send(&bytes[..len])
                    } else {
                        sender.send_with(len, |slot| pattern::fill(slot, len as u64, 0))
                    };
                    sent.map(drop).expect("open");
                }
            })
        })
        .collect();
    drop(sender);
    let receivers: Vec<_> = (0..consumers)
        .map(|consumer| {
            let receiver = receiver.clone();
            thread::spawn(move || {
                let mut into = vec![0; longest];
                let mut received = 0;
                loop {
                    if (received + consumer) % 2 == 0 {
                        let Ok(message) = receiver.recv() else { break };
                        pattern::check(&message, message.len() as u64, 0);
                    } else {
                        let Ok(copied) = receiver.recv_into(&mut into) else { break };
                        pattern::check(&into[..copied.len], copied.len as u64, 0);
                    }
                    received += 1;
                }
                received
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().expect("sending does not panic"));
    let received: usize =
        receivers.into_iter().map(|receiver| receiver.join().expect("the bytes are right")).sum();
    assert_eq!(received, count * producers);
}

fn main() {
    let ran = races::run_own("channel", || channel(false))
        + races::run_own("channel_sleeping", || channel(true))
        + races::run_own("static_channel", static_channel)
        + races::run_own("messages_one_to_one", || messages(4096, 1, 1, 64))
        + races::run_own("messages_one_to_eight", || messages(4096, 1, 8, 8))
        + races::run_own("messages_four_to_four", || messages(8192, 4, 4, 2000));
    assert!(ran > 0, "no program of this name");
}
