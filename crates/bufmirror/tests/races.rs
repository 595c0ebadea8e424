//! What hands bytes from thread to thread, for ThreadSanitizer: without the test harness, whose locks it does not see in a precompiled
//! standard library.
//!
//! ThreadSanitizer takes the two addresses of a byte for two bytes, so the traffic keeps in front of the border where it can: there both
//! ends use one address. Without a sanitizer the programs run as well, and check the bytes. Like a test harness, takes `--exact NAME` for
//! one of them.

use std::thread;

use buftest::races;
use buftest::trials::scaled;

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

fn main() {
    let ran =
        races::run_own("channel", || channel(false)) + races::run_own("channel_sleeping", || channel(true));
    assert!(ran > 0, "no program of this name");
}
