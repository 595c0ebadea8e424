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

use super::{Message, Receiver, RecvError, SendError, Sender};

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
}

/// Runs one program.
pub(crate) fn run((sender, receiver): &(Sender, Receiver), bytes: &mut Bytes<'_>) {
    let naive = NaiveQueue::new(sender.capacity());
    let mut pair = Pair { sender, receiver, naive, kept: Vec::new() };
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        pair.step(bytes);
    }
    pair.kept.iter().for_each(|kept| pattern::check(kept, kept.sequence(), 0));
}

/// Calls what may panic on purpose, without the message of a panic: `None` if it did.
fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

impl Pair<'_> {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let (sender, receiver) = (self.sender, self.receiver);
        let (kind, len) = (bytes.below(16), bytes.size().min(sender.capacity() + 100));
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
            14 if !self.kept.is_empty() => {
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
