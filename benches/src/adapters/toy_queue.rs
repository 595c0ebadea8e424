//! The queue that the "black magic" circular buffer's article tries its ring with: one lock, two
//! conditions, and messages with a header in a mirrored ring.
//!
//! A condition is notified only while somebody waits for it, which is counted with the lock held.
//! The standard library makes a system call of each notification, where the C library of the
//! article's program looks first.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bufmirror::MirrorRing;

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::Messages;

pub(super) fn contestant() -> Contestant {
    Contestant::only(
        "toy-queue",
        Kind::Control,
        &["messages"],
        "a mirrored ring behind one mutex with two condition variables, and a header of sequence and length before each message",
    )
    .messages::<ToyQueue>()
}

/// Bytes of sequence and length.
const HEADER_BYTES: usize = 16;

pub(crate) struct ToyQueue {
    state: Mutex<State>,
    not_empty: Condvar,
    not_full: Condvar,
}

struct State {
    ring: MirrorRing,
    sequence: u64,
    /// How many wait for a message, and how many for room.
    receivers: usize,
    senders: usize,
}

impl ToyQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages for ToyQueue {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        let ring = MirrorRing::new(bytes).map_err(|error| error.to_string())?;
        Ok(Self {
            state: Mutex::new(State { ring, sequence: 0, receivers: 0, senders: 0 }),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        })
    }

    fn send(&self, message: &[u8]) {
        let mut state = self.lock();
        let bytes = HEADER_BYTES + message.len();
        while state.ring.spare_capacity() < bytes {
            state.senders += 1;
            state = self.not_full.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.senders -= 1;
        }
        let sequence = state.sequence;
        state.sequence += 1;
        let room = state.ring.reserve(bytes).expect("there is room");
        room[..8].copy_from_slice(&sequence.to_le_bytes());
        room[8..HEADER_BYTES].copy_from_slice(&(message.len() as u64).to_le_bytes());
        room[HEADER_BYTES..].copy_from_slice(message);
        state.ring.commit(bytes);
        let somebody_waits = state.receivers > 0;
        drop(state);
        if somebody_waits {
            self.not_empty.notify_one();
        }
    }

    fn receive(&self, into: &mut [u8]) -> usize {
        let mut state = self.lock();
        while state.ring.is_empty() {
            state.receivers += 1;
            state = self.not_empty.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.receivers -= 1;
        }
        let filled = state.ring.peek();
        let (_, length) = filled[..HEADER_BYTES].split_at(8);
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
        into[..length].copy_from_slice(&filled[HEADER_BYTES..HEADER_BYTES + length]);
        state.ring.consume(HEADER_BYTES + length);
        let somebody_waits = state.senders > 0;
        drop(state);
        if somebody_waits {
            self.not_full.notify_one();
        }
        length
    }
}
