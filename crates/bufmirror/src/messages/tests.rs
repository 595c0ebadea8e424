//! One thread and all that a queue promises it, with memory that is mapped twice and with memory
//! that is not.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use std::io::IoSlice;

use buftest::messages::{Fate, Frame, NaiveQueue, NotSent, message};
use buftest::pattern;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample;

use super::frames::{WORD_BYTES, frame_bytes};
use super::queue::SHORT_BYTES;
use super::{Message, MessageQueue, RecvError, SendError};
use crate::map::Mirror;

fn mapped(bytes: usize) -> MessageQueue {
    MessageQueue::over(Mirror::new(bytes, false).expect("the system maps"))
}

fn heap(bytes: usize) -> MessageQueue {
    MessageQueue::over(Mirror::on_heap(bytes).expect("the heap has room"))
}

/// Every length at and around every kind of border, both ways out.
fn lengths_at_borders(queue: &MessageQueue, lengths: impl Iterator<Item = usize> + Clone) {
    let (sender, receiver, capacity) = (queue.sender(), queue.receiver(), queue.capacity());
    let mut into = vec![0; capacity];
    let mut number = 0;
    // The queue is empty at the start of each, and the place where it starts is brought to just
    // before the border.
    let mut at = 0;
    for before in [WORD_BYTES, 2 * WORD_BYTES, 5 * WORD_BYTES, capacity] {
        for len in lengths.clone() {
            let wanted = capacity - before;
            let step = if wanted >= at { wanted - at } else { wanted + capacity - at };
            if step > 0 {
                assert_eq!(sender.try_send(&message(number, step - WORD_BYTES)), Ok(number));
                let moved = receiver.try_recv().expect("just sent");
                assert_eq!((moved.len(), moved.sequence()), (step - WORD_BYTES, number));
                number += 1;
            }
            assert_eq!(sender.try_send(&message(number, len)), Ok(number));
            if len.is_multiple_of(2) {
                let read = receiver.try_recv().expect("just sent");
                assert_eq!((read.len(), read.sequence()), (len, number));
                pattern::check(&read, number, 0);
            } else {
                let copied = receiver.try_recv_into(&mut into).expect("just sent");
                assert_eq!((copied.len, copied.sequence), (len, number));
                pattern::check(&into[..len], number, 0);
            }
            number += 1;
            at = (wanted + frame_bytes(len)) % capacity;
            assert_eq!(receiver.try_recv().map(|message| message.len()), Err(RecvError::Empty));
        }
    }
}

#[test]
fn every_length_at_borders_heap() {
    let queue = heap(512);
    assert!(!queue.is_mapped());
    lengths_at_borders(&queue, 0..=queue.max_message());
}

#[test]
fn every_length_at_borders_mapped() {
    let queue = mapped(4096);
    let step = if cfg!(miri) { 501 } else { 1 };
    lengths_at_borders(&queue, (0..=queue.max_message()).step_by(step));
}

#[derive(Debug, Clone)]
enum Op {
    Send(usize),
    /// Parts of one message.
    Gather(Vec<usize>),
    /// In place; panics before the end if so.
    With(usize, bool),
    /// In place, with room for the first number of bytes, of which the second is written.
    UpTo(usize, usize),
    /// Into a buffer of this number of bytes.
    Copy(usize),
    /// Read in place and dropped.
    Read,
    /// Read in place and kept.
    Keep,
    /// One of those that are kept is dropped.
    Drop(usize),
}

/// Lengths at which something changes: the frame, how a message is copied, whether that is done
/// under the lock; the longest message of 512 bytes, and their number.
const THRESHOLDS: [usize; 6] = [WORD_BYTES, 16, 32, SHORT_BYTES, 512 - WORD_BYTES, 512];

fn op() -> impl Strategy<Value = Op> {
    let near = || (sample::select(&THRESHOLDS[..]), 0..3usize).prop_map(|(at, step)| at - 1 + step);
    let len = || prop_oneof![4 => 0..40usize, 2 => 0..400usize, 1 => 480..520usize, 2 => near()];
    prop_oneof![
        6 => len().prop_map(Op::Send),
        2 => vec(len(), 0..4).prop_map(Op::Gather),
        3 => (len(), proptest::bool::weighted(0.3)).prop_map(|(len, panics)| Op::With(len, panics)),
        3 => (len(), len()).prop_map(|(max, len)| Op::UpTo(max, len)),
        5 => len().prop_map(Op::Copy),
        3 => Just(Op::Read),
        3 => Just(Op::Keep),
        5 => (0..4usize).prop_map(Op::Drop),
    ]
}

struct Pair<'a> {
    queue: &'a MessageQueue,
    naive: NaiveQueue,
    kept: Vec<Message<'a>>,
}

impl Pair<'_> {
    /// What a message of `len` bytes, with room for `room`, has to return when it is sent.
    fn sends(&mut self, room: usize, len: usize, fate: Fate) -> Result<u64, SendError> {
        self.naive.send(room, len, fate).map_err(|error| match error {
            NotSent::Full { requested, available } => SendError::Full { requested, available },
            NotSent::TooLong { requested, limit } => SendError::TooLong { requested, limit },
        })
    }

    fn run(&mut self, op: Op) {
        let (sender, receiver) = (self.queue.sender(), self.queue.receiver());
        match op {
            Op::Send(len) => {
                let bytes = message(self.naive.next(), len);
                let wanted = self.sends(len, len, Fate::Sent);
                assert_eq!(sender.try_send(&bytes), wanted);
            }
            Op::Gather(lengths) => {
                let len = lengths.iter().sum();
                let bytes = message(self.naive.next(), len);
                let mut rest = &bytes[..];
                let parts: Vec<_> = lengths
                    .iter()
                    .map(|&len| {
                        let (first, others) = rest.split_at(len);
                        rest = others;
                        IoSlice::new(first)
                    })
                    .collect();
                let wanted = self.sends(len, len, Fate::Sent);
                assert_eq!(sender.try_send_vectored(&parts), wanted);
            }
            Op::With(len, panics) => {
                let bytes = message(self.naive.next(), len);
                let wanted = self.sends(len, len, if panics { Fate::Abandoned } else { Fate::Sent });
                let write = |slot: &mut [u8]| {
                    slot.copy_from_slice(&bytes);
                    if panics {
                        // Without the message of a panic.
                        std::panic::resume_unwind(Box::new(()));
                    }
                };
                let run = AssertUnwindSafe(|| sender.try_send_with(len, write));
                match std::panic::catch_unwind(run) {
                    Ok(found) => assert_eq!(found, wanted),
                    Err(_) => assert!(panics && wanted.is_ok()),
                }
            }
            Op::UpTo(max, len) => {
                let bytes = message(self.naive.next(), len);
                let fate = if len > max { Fate::Abandoned } else { Fate::Sent };
                let wanted = self.sends(max, len.min(max), fate);
                let write = |slot: &mut [u8]| {
                    assert_eq!(slot.len(), max);
                    // What is behind the message is not sent, and comes up to the end of its room.
                    slot.fill(0xFF);
                    if let Some(slot) = slot.get_mut(..len) {
                        slot.copy_from_slice(&bytes);
                    }
                    len
                };
                let run = AssertUnwindSafe(|| sender.try_send_with(max, write));
                match std::panic::catch_unwind(run) {
                    Ok(found) => assert_eq!(found, wanted),
                    Err(_) => assert!(len > max && wanted.is_ok()),
                }
            }
            Op::Copy(len) => {
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
            Op::Read | Op::Keep => {
                let found = receiver.try_recv();
                match self.naive.first() {
                    None => assert_eq!(found.err(), Some(RecvError::Empty)),
                    Some(frame) => {
                        let found = found.expect("there is one");
                        assert_eq!((found.sequence(), found.len()), (frame.number, frame.len));
                        pattern::check(&found, found.sequence(), 0);
                        if let Op::Keep = op {
                            self.naive.note(frame.number, Fate::Kept);
                            self.kept.push(found);
                        } else {
                            self.naive.note(frame.number, Fate::Done);
                        }
                    }
                }
            }
            Op::Drop(index) if index < self.kept.len() => {
                let kept = self.kept.swap_remove(index);
                pattern::check(&kept, kept.sequence(), 0);
                self.naive.note(kept.sequence(), Fate::Done);
                drop(kept);
            }
            Op::Drop(_) => {}
        }
    }
}

fn compare(queue: &MessageQueue, ops: Vec<Op>) {
    let mut pair = Pair { queue, naive: NaiveQueue::new(queue.capacity()), kept: Vec::new() };
    ops.into_iter().for_each(|op| pair.run(op));
    for kept in &pair.kept {
        pattern::check(kept, kept.sequence(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_a_queue_heap(ops in vec(op(), 1..120)) {
        compare(&heap(504), ops);
    }

    #[test]
    fn is_a_queue_mapped(ops in vec(op(), 1..400)) {
        compare(&mapped(1), ops);
    }
}
