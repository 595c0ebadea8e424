//! A naive queue of messages: what each call of `bufmirror`'s queue has to return, from one thread.

use std::collections::VecDeque;

use crate::pattern;

/// Bytes in front of a message. Frames are a multiple of them.
const WORD_BYTES: usize = 8;

/// Returns the bytes that a message takes for which there is room for `len` bytes.
pub fn frame_bytes(len: usize) -> usize {
    (WORD_BYTES + len).next_multiple_of(WORD_BYTES)
}

/// Makes the bytes of a message, which are those of its number.
pub fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(&mut bytes, number, 0);
    bytes
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
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
pub struct Frame {
    /// Its sequence number.
    pub number: u64,
    /// Its length.
    pub len: usize,
    /// What became of it.
    pub fate: Fate,
    /// The length that there was room for.
    room: usize,
}

/// Why a message is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// There is no room.
    Full {
        /// Bytes of its frame.
        requested: usize,
        /// Bytes that are free.
        available: usize,
    },
    /// There can be no room.
    TooLong {
        /// Bytes of the message.
        requested: usize,
        /// Bytes of the longest.
        limit: usize,
    },
}

/// The queue.
#[derive(Debug)]
pub struct NaiveQueue {
    capacity: usize,
    frames: VecDeque<Frame>,
    next: u64,
}

impl NaiveQueue {
    /// Makes an empty queue of `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, frames: VecDeque::new(), next: 0 }
    }

    /// Returns the number that the next message gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sends a message of `len` bytes into room for as many as `room`.
    ///
    /// # Errors
    ///
    /// When it has to be refused.
    pub fn send(&mut self, room: usize, len: usize, fate: Fate) -> Result<u64, NotSent> {
        let limit = self.capacity - WORD_BYTES;
        if room > limit {
            return Err(NotSent::TooLong { requested: room, limit });
        }
        let taken: usize = self.frames.iter().map(|frame| frame_bytes(frame.room)).sum();
        let (requested, available) = (frame_bytes(room), self.capacity - taken);
        if requested > available {
            return Err(NotSent::Full { requested, available });
        }
        let number = self.next;
        self.frames.push_back(Frame { number, len, fate, room });
        self.next += 1;
        Ok(number)
    }

    /// Returns the message that is received next, and passes by what was abandoned.
    pub fn first(&mut self) -> Option<Frame> {
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
    ///
    /// # Panics
    ///
    /// When its place is free already.
    pub fn note(&mut self, number: u64, fate: Fate) {
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
