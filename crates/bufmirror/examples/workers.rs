//! Work for many threads: one takes requests in, four answer them, and what they answer goes back
//! through a second queue.
//!
//! A request is read where it lies in the queue; no buffer is made for it.
//!
//! ```text
//! cargo run --release -p bufmirror --example workers
//! ```
#![allow(clippy::std_instead_of_core, reason = "a program with an operating system")]

use std::thread;
use std::time::Instant;

use bufmirror::messages;

const WORKERS: usize = 4;
const REQUESTS: u64 = 200_000;

/// Requests are of different lengths.
fn request(number: u64) -> Vec<u8> {
    vec![number as u8; 8 + (number * 37 % 1000) as usize]
}

/// Stands for what a worker does with a request.
fn answer(request: &[u8]) -> u64 {
    request.iter().map(|&byte| u64::from(byte)).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (requests, incoming) = messages::channel(256 * 1024)?;
    let (answers, outgoing) = messages::channel(64 * 1024)?;

    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (incoming, answers) = (incoming.clone(), answers.clone());
            thread::spawn(move || {
                let mut count = 0;
                // Until the queue is closed and empty.
                while let Ok(message) = incoming.recv() {
                    let mut text = [0; 16];
                    text[..8].copy_from_slice(&message.sequence().to_ne_bytes());
                    text[8..].copy_from_slice(&answer(&message).to_ne_bytes());
                    drop(message); // its place is free from here on
                    if answers.send(&text).is_err() {
                        break;
                    }
                    count += 1;
                }
                count
            })
        })
        .collect();
    drop((incoming, answers));

    let started = Instant::now();
    let collector = thread::spawn(move || {
        let (mut total, mut text) = (0_u64, [0; 16]);
        while outgoing.recv_into(&mut text).is_ok() {
            let [.., sum] = text.as_chunks::<8>().0 else { unreachable!("16 bytes are two words") };
            total += u64::from_ne_bytes(*sum);
        }
        total
    });
    let mut expected = 0;
    for number in 0..REQUESTS {
        let request = request(number);
        expected += answer(&request);
        requests.send(&request)?;
    }
    drop(requests); // the workers take what is left, and end
    let shares: Vec<u64> =
        workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect();
    assert_eq!(collector.join().expect("the collector does not panic"), expected);
    assert_eq!(shares.iter().sum::<u64>(), REQUESTS);
    println!("{REQUESTS} requests in {:.0?}; each worker's: {shares:?}", started.elapsed());
    Ok(())
}
