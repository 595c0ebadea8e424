//! Programs of operations on a queue of messages and on a naive one, read from bytes.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::boxed::Box;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use testkit::bytes::Bytes;
use testkit::lockstep::panics;
use testkit::pattern;

use super::{Message, Messages, Receiver, RecvError, SendError, Sender};

/// Steps of the longest program.
const STEPS: usize = 200;
/// Bytes in front of a message. Frames are a multiple of them.
const WORD_BYTES: usize = 8;

/// Returns the bytes that a message takes for which there is room for `len` bytes.
pub(crate) fn frame_bytes(len: usize) -> usize {
    (WORD_BYTES + len).next_multiple_of(WORD_BYTES)
}

/// Makes the bytes of a message, which are those of its number.
pub(crate) fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(&mut bytes, number, 0);
    bytes
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It waits for a receiver.
    Sent,
    /// A receiver has it.
    Kept,
    /// It was received, and its place is free when those in front of it are.
    Done,
    /// Its writer panicked.
    Abandoned,
}

/// A message whose place is not free.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Its sequence number.
    number: u64,
    /// Its length.
    len: usize,
    /// What became of it.
    fate: Fate,
    /// The length that there was room for.
    room: usize,
}

/// The queue.
#[derive(Debug)]
struct NaiveQueue {
    capacity: usize,
    frames: VecDeque<Frame>,
    next: u64,
}

impl NaiveQueue {
    /// Makes an empty queue of `capacity` bytes.
    fn new(capacity: usize) -> Self {
        Self { capacity, frames: VecDeque::new(), next: 0 }
    }

    /// Sends a message of `len` bytes into room for as many as `room`.
    fn send(&mut self, room: usize, len: usize, fate: Fate) -> Result<u64, SendError> {
        let limit = self.capacity - WORD_BYTES;
        if room > limit {
            return Err(SendError::TooLong { requested: room, limit });
        }
        let taken: usize = self.frames.iter().map(|frame| frame_bytes(frame.room)).sum();
        let (requested, available) = (frame_bytes(room), self.capacity - taken);
        if requested > available {
            return Err(SendError::Full { requested, available });
        }
        let number = self.next;
        self.frames.push_back(Frame { number, len, fate, room });
        self.next += 1;
        Ok(number)
    }

    /// Returns the message that is received next, and passes by what was abandoned.
    fn first(&mut self) -> Option<Frame> {
        for frame in &mut self.frames {
            match frame.fate {
                Fate::Sent => break,
                Fate::Abandoned => frame.fate = Fate::Done,
                Fate::Kept | Fate::Done => {}
            }
        }
        self.sweep();
        self.frames.iter().find(|frame| frame.fate == Fate::Sent).copied()
    }

    /// Notes what became of the message `number`.
    fn note(&mut self, number: u64, fate: Fate) {
        let frame = self.frames.iter_mut().find(|frame| frame.number == number);
        frame.expect("its place is not free").fate = fate;
        self.sweep();
    }

    /// Sends messages of these lengths, all or none. Returns the number of the first.
    fn send_many(&mut self, lens: &[usize]) -> Result<u64, SendError> {
        let all: usize = lens.iter().map(|&len| frame_bytes(len)).sum();
        let padding = lens.last().map_or(0, |&len| frame_bytes(len) - WORD_BYTES - len);
        let (first, frames) = (self.next, self.frames.len());
        self.send(all - WORD_BYTES - padding, 0, Fate::Sent)?;
        self.frames.truncate(frames);
        self.next = first;
        for &len in lens {
            self.send(len, len, Fate::Sent).expect("there was room for all of them");
        }
        Ok(first)
    }

    /// Frees what is done at the front.
    fn sweep(&mut self) {
        while self.frames.front().is_some_and(|frame| frame.fate == Fate::Done) {
            self.frames.pop_front();
        }
    }
}

/// A queue, a naive one, and messages that are kept.
struct Pair<'a> {
    sender: &'a Sender,
    receiver: &'a Receiver,
    naive: NaiveQueue,
    kept: Vec<Message<'a>>,
    /// Batches, and the numbers of their messages.
    batches: Vec<(Messages<'a>, Vec<u64>)>,
}

/// Runs one program.
pub(crate) fn run((sender, receiver): &(Sender, Receiver), bytes: &mut Bytes<'_>) {
    let naive = NaiveQueue::new(sender.capacity());
    let mut pair = Pair { sender, receiver, naive, kept: Vec::new(), batches: Vec::new() };
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        pair.step(bytes);
    }
    pair.kept.iter().for_each(|kept| pattern::check(kept, kept.sequence(), 0));
    pair.batches.iter().for_each(|(batch, numbers)| check(batch, numbers));
}

/// Checks the messages of a batch.
fn check(batch: &Messages<'_>, numbers: &[u64]) {
    assert_eq!((batch.sequence(), batch.iter().len()), (numbers[0], numbers.len()));
    batch.iter().zip(numbers).for_each(|(message, &number)| pattern::check(message, number, 0));
}

/// Calls what may panic on purpose, without the message of a panic: `None` if it did.
fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

impl Pair<'_> {
    fn drop_batch(&mut self, index: usize) {
        let (batch, numbers) = self.batches.swap_remove(index);
        check(&batch, &numbers);
        numbers.into_iter().for_each(|number| self.naive.note(number, Fate::Done));
        drop(batch);
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let (sender, receiver) = (self.sender, self.receiver);
        let (kind, len) = (bytes.below(20), bytes.size().min(sender.capacity() + 100));
        match kind {
            0..=3 => {
                let sent = message(self.naive.next, len);
                let wanted = self.naive.send(len, len, Fate::Sent);
                let found = match kind {
                    0 => match sender.send_timeout(&sent, Duration::ZERO) {
                        Err(SendError::TimedOut) => {
                            assert!(matches!(wanted, Err(SendError::Full { .. })), "{wanted:?}");
                            wanted
                        }
                        other => other,
                    },
                    _ => sender.try_send(&sent),
                };
                assert_eq!(found, wanted);
            }
            4..=5 => {
                let (first, second) = (bytes.size() % (len + 1), bytes.size() % (len + 1));
                let sent = message(self.naive.next, len);
                let (head, tail) = sent.split_at(first);
                let (middle, tail) = tail.split_at(second.min(tail.len()));
                let parts = [head, middle, tail].map(IoSlice::new);
                let wanted = self.naive.send(len, len, Fate::Sent);
                assert_eq!(sender.try_send_vectored(&parts), wanted);
            }
            6..=7 => {
                let panics = bytes.below(3) == 0;
                let sent = message(self.naive.next, len);
                let wanted = self.naive.send(len, len, if panics { Fate::Abandoned } else { Fate::Sent });
                let write = |slot: &mut [u8]| {
                    slot.copy_from_slice(&sent);
                    if panics {
                        resume_unwind(Box::new(()));
                    }
                };
                match guarded(|| sender.try_send_with(len, write)) {
                    Some(found) => assert_eq!(found, wanted),
                    None => assert!(panics && wanted.is_ok()),
                }
            }
            8..=10 => {
                let mut into = vec![0; len];
                let found = receiver.try_recv_into(&mut into);
                match self.naive.first() {
                    None => assert_eq!(found, Err(RecvError::Empty)),
                    Some(Frame { len: needed, .. }) if needed > len => {
                        assert_eq!(found, Err(RecvError::TooSmall { needed, available: len }));
                    }
                    Some(frame) => {
                        let found = found.expect("there is one that fits");
                        assert_eq!((found.sequence, found.len), (frame.number, frame.len));
                        pattern::check(&into[..found.len], found.sequence, 0);
                        self.naive.note(frame.number, Fate::Done);
                    }
                }
            }
            11..=13 => {
                let found = match kind {
                    11 => match receiver.recv_timeout(Duration::ZERO) {
                        Err(RecvError::TimedOut) => Err(RecvError::Empty),
                        other => other,
                    },
                    _ => receiver.try_recv(),
                };
                match self.naive.first() {
                    None => assert_eq!(found.err(), Some(RecvError::Empty)),
                    Some(frame) => {
                        let found = found.expect("there is one");
                        assert_eq!((found.sequence(), found.len()), (frame.number, frame.len));
                        pattern::check(&found, found.sequence(), 0);
                        self.naive.note(frame.number, if kind == 13 { Fate::Done } else { Fate::Kept });
                        if kind != 13 {
                            self.kept.push(found);
                        }
                    }
                }
            }
            14 => {
                let lens: Vec<usize> = (0..1 + bytes.below(6)).map(|_| bytes.size() % (len + 1)).collect();
                let numbers = self.naive.next..self.naive.next + lens.len() as u64;
                let sent: Vec<_> =
                    numbers.clone().zip(&lens).map(|(number, &len)| message(number, len)).collect();
                let sent: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
                let wanted = self.naive.send_many(&lens);
                assert_eq!(sender.try_send_many(&sent), wanted.map(|_| numbers));
            }
            15 | 16 => {
                let max = bytes.below(8);
                match receiver.try_recv_many(max) {
                    Err(error) => {
                        assert_eq!((error, self.naive.first().is_none()), (RecvError::Empty, true));
                    }
                    Ok(batch) => {
                        let mut numbers = vec![];
                        for message in batch.iter() {
                            let frame = self.naive.first().expect("no more than there are");
                            assert_eq!(message.len(), frame.len);
                            self.naive.note(frame.number, Fate::Kept);
                            numbers.push(frame.number);
                        }
                        if numbers.len() < max.max(1) {
                            assert!(self.naive.first().is_none(), "all that have come");
                        }
                        self.batches.push((batch, numbers));
                        if kind == 15 {
                            self.drop_batch(self.batches.len() - 1);
                        }
                    }
                }
            }
            17 if !self.batches.is_empty() => self.drop_batch(len % self.batches.len()),
            18 if !self.kept.is_empty() => {
                let kept = self.kept.swap_remove(len % self.kept.len());
                pattern::check(&kept, kept.sequence(), 0);
                self.naive.note(kept.sequence(), Fate::Done);
                drop(kept);
            }
            _ => {
                let max = bytes.size();
                let sent = message(self.naive.next, len);
                let fate = if len > max { Fate::Abandoned } else { Fate::Sent };
                let wanted = self.naive.send(max, len.min(max), fate);
                let write = |slot: &mut [u8]| {
                    assert_eq!(slot.len(), max);
                    // What is behind the message is not sent, and comes up to the end of its room.
                    slot.fill(0xFF);
                    if let Some(slot) = slot.get_mut(..len) {
                        slot.copy_from_slice(&sent);
                    }
                    len
                };
                let send = || sender.try_send_with(max, write);
                if len > max && wanted.is_ok() {
                    assert!(panics(|| _ = send()), "{len} bytes in room for {max}");
                } else {
                    assert_eq!(send(), wanted);
                }
            }
        }
    }
}
