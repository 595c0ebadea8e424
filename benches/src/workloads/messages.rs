//! `messages`: framed messages through one queue, from some threads to others.
//!
//! The threads are not kept on processors. In most rows there are more of them than processors, and
//! where the system lets them run is part of what such a queue has to live with. They are started
//! before the clock is.

use core::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::Unsupported;
use crate::harness::serve::Messages;

/// Bytes of the queue.
const CAPACITY: usize = 64 << 10;
/// The longest message.
const LARGEST: usize = 4 << 10;
/// Messages of one iteration, and lengths that are gone through where they are random.
const LENGTHS: usize = 1 << 16;

pub(super) fn cases() -> Vec<Case> {
    let row = |producers, consumers, bytes| Case::Messages {
        producers,
        consumers,
        bytes,
        batch: 1,
        ring: CAPACITY,
    };
    let mut rows = vec![row(1, 1, Some(8)), row(1, 8, Some(8)), row(1, 8, Some(256)), row(4, 4, None)];
    for ring in [16 << 10, CAPACITY, 1 << 20] {
        let row = |bytes| Case::Messages { producers: 1, consumers: 1, bytes, batch: 1, ring };
        rows.extend([row(Some(256)), row(None)]);
    }
    // A log: lines of some threads, for one that writes them.
    rows.extend([1, 4].map(|producers| Case::Messages {
        producers,
        consumers: 1,
        bytes: Some(100),
        batch: 32,
        ring: CAPACITY,
    }));
    rows
}

struct Through<M> {
    queue: M,
    producers: usize,
    consumers: usize,
    batch: usize,
    lengths: Vec<usize>,
    from: Vec<u8>,
}

pub(crate) fn cell<M: Messages>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Messages { producers, consumers, bytes, batch, ring } = case else {
        return Err(not_mine(case));
    };
    let mut random = fastrand::Rng::with_seed(9);
    let lengths = match bytes {
        Some(bytes) => vec![bytes; LENGTHS],
        None => (0..LENGTHS).map(|_| random.usize(8..=LARGEST)).collect(),
    };
    let mut from = vec![0; LARGEST];
    random.fill(&mut from);
    let queue = M::build(ring, lengths.iter().sum::<usize>() / LENGTHS)?;
    Ok(Box::new(Through { queue, producers, consumers, batch, lengths, from }))
}

impl<M: Messages> Through<M> {
    /// Sends `count` messages, all producers together, and an empty one for each consumer, which
    /// ends it. `take` gets each consumer's messages. Returns the time from the start of all to the
    /// end of the last.
    fn through(&self, count: u64, take: impl Fn(&[u8]) + Sync) -> Duration {
        let barrier = Barrier::new(self.producers + self.consumers + 1);
        thread::scope(|scope| {
            let (barrier, take) = (&barrier, &take);
            let producers: Vec<_> = (0..self.producers as u64)
                .map(|producer| {
                    let all = self.producers as u64;
                    let mine = count / all + u64::from(producer < count % all);
                    let mut batch = vec![self.from.clone(); self.batch];
                    scope.spawn(move || {
                        // Who sent it, and the how manieth it is.
                        let write = |message: &mut [u8], index: u64| {
                            message[..8].copy_from_slice(&(producer << 48 | index).to_le_bytes());
                            black_box(self.lengths[index as usize % LENGTHS])
                        };
                        barrier.wait();
                        if let [message] = &mut batch[..] {
                            for index in 0..mine {
                                let length = write(message, index);
                                self.queue.send(&message[..length]);
                            }
                            return;
                        }
                        for first in (0..mine).step_by(self.batch) {
                            let messages = batch.iter_mut().zip(first..mine).map(|(message, index)| {
                                let length = write(message, index);
                                &message[..length]
                            });
                            self.queue.send_many(&messages.collect::<Vec<_>>());
                        }
                    })
                })
                .collect();
            let consumers: Vec<_> = (0..self.consumers)
                .map(|_| {
                    scope.spawn(move || {
                        let mut into = vec![0; LARGEST];
                        barrier.wait();
                        let mut is_end = false;
                        while self.batch > 1 && !is_end {
                            self.queue.receive_many(self.batch, |message| {
                                is_end = message.is_empty();
                                if !is_end {
                                    take(message);
                                }
                            });
                        }
                        if is_end {
                            return Instant::now();
                        }
                        loop {
                            let length = self.queue.receive(&mut into);
                            if length == 0 {
                                return Instant::now();
                            }
                            take(&into[..length]);
                        }
                    })
                })
                .collect();
            let start = Instant::now();
            barrier.wait();
            for producer in producers {
                producer.join().expect("sending does not panic");
            }
            (0..self.consumers).for_each(|_| self.queue.send(&[]));
            let ends =
                consumers.into_iter().map(|consumer| consumer.join().expect("receiving does not panic"));
            ends.max().map_or(Duration::ZERO, |end| end - start)
        })
    }
}

impl<M: Messages> Cell for Through<M> {
    fn check(&mut self) -> Result<(), String> {
        use std::sync::Mutex;
        const COUNT: u64 = 5000;
        let seen = Mutex::new(Vec::new());
        let wrong = Mutex::new(None);
        self.through(COUNT, |message| {
            let number = u64::from_le_bytes(message[..8].try_into().expect("eight bytes"));
            let index = (number & 0xffff_ffff_ffff) as usize;
            if message.len() != self.lengths[index % LENGTHS] || message[8..] != self.from[8..message.len()] {
                *wrong.lock().expect("nobody panics") = Some(format!("message {number:#x} has other bytes"));
            }
            seen.lock().expect("nobody panics").push(number);
        });
        if let Some(wrong) = wrong.into_inner().expect("nobody panics") {
            return Err(wrong);
        }
        let mut seen = seen.into_inner().expect("nobody panics");
        seen.sort_unstable();
        let all = self.producers as u64;
        let wanted = (0..all).flat_map(|producer| {
            let mine = COUNT / all + u64::from(producer < COUNT % all);
            (0..mine).map(move |index| producer << 48 | index)
        });
        if seen.into_iter().eq(wanted) { Ok(()) } else { Err("not each message once".into()) }
    }

    fn run(&mut self, iterations: u64) -> Duration {
        self.through(iterations * LENGTHS as u64, |message| {
            black_box(message);
        })
    }

    /// Many, so that in the shortest run too the threads do more than wake up.
    fn operations(&self) -> u64 {
        LENGTHS as u64
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.lengths.iter().sum::<usize>() as u64)
    }
}
