//! One thread and all that a queue promises it, with memory that is mapped twice and with memory
//! that is not.

use alloc::vec;

use proptest::collection::vec;
use proptest::prelude::*;
use testkit::bytes::Bytes;
use testkit::pattern;

use self::program::message;
use super::frames::{WORD_BYTES, frame_bytes};
use super::{Message, Messages, Receiver, RecvError, SendError, Sender, over};
use crate::map::Mirror;

mod program;

fn mapped(bytes: usize) -> (Sender, Receiver) {
    over(Mirror::new(bytes, false).expect("the system maps"))
}

fn heap(bytes: usize) -> (Sender, Receiver) {
    over(Mirror::on_heap(bytes).expect("the heap has room"))
}

/// Every length at and around every kind of border, both ways out.
fn lengths_at_borders((sender, receiver): &(Sender, Receiver), lengths: impl Iterator<Item = usize> + Clone) {
    let capacity = sender.capacity();
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
    assert!(!queue.0.is_mapped());
    lengths_at_borders(&queue, 0..=queue.0.max_message());
}

#[test]
fn every_length_at_borders_mapped() {
    let queue = mapped(4096);
    let step = if cfg!(miri) { 501 } else { 1 };
    lengths_at_borders(&queue, (0..=queue.0.max_message()).step_by(step));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_a_queue_heap(program in vec(any::<u8>(), 1..600)) {
        program::run(&heap(504), &mut Bytes::new(&program));
    }

    #[test]
    fn is_a_queue_mapped(program in vec(any::<u8>(), 1..1000)) {
        program::run(&mapped(1), &mut Bytes::new(&program));
    }
}
