//! Generated operations on a ring and on a `VecDeque`, compared after each step.

use std::collections::VecDeque;
use std::mem;

use bufmirror::GetError;
use bufmirror::bufcore::ReserveError;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample;

use crate::ring::{Ring, ends};

#[derive(Debug, Clone)]
enum Op {
    Put(usize),
    Get(usize),
    /// Reserve so much, commit a part of it.
    Reserve(usize, usize),
    ForgetRoom(usize),
    Consume(usize),
    /// Change this number in place.
    Change(usize),
    Write(usize),
    Read(usize),
    Clear,
}

/// Lengths from which on, or up to which, bytes are copied in another way: as one word, as two, as
/// pieces. A quarter of a page, for which an end looks longer, and a page.
const THRESHOLDS: [usize; 5] = [16, 32, 1024, 2048, 4096];

/// Mostly short, at times about all or more than all that a ring of a page holds, and at times at a
/// threshold, one below it or one above.
fn length() -> impl Strategy<Value = usize> {
    let near = (sample::select(&THRESHOLDS[..]), 0..3usize).prop_map(|(at, step)| at - 1 + step);
    prop_oneof![4 => 0..70usize, 2 => 0..2000usize, 1 => 4000..4200usize, 2 => near]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => length().prop_map(Op::Put),
        4 => length().prop_map(Op::Get),
        4 => (length(), length()).prop_map(|(n, m)| Op::Reserve(n, m)),
        1 => length().prop_map(Op::ForgetRoom),
        4 => length().prop_map(Op::Consume),
        3 => length().prop_map(Op::Change),
        2 => length().prop_map(Op::Write),
        2 => length().prop_map(Op::Read),
        1 => Just(Op::Clear),
    ]
}

struct Pair<R> {
    ring: R,
    oracle: VecDeque<u8>,
    /// What is written next.
    next: u8,
}

impl<R: Ring> Pair<R> {
    fn new(ring: R) -> Self {
        Self { ring, oracle: VecDeque::new(), next: 0 }
    }

    fn fresh(&mut self, n: usize) -> Vec<u8> {
        (0..n)
            .map(|_| {
                self.next = self.next.wrapping_add(1);
                self.next
            })
            .collect()
    }

    fn room(&self) -> usize {
        self.ring.capacity() - self.oracle.len()
    }

    fn step(&mut self, op: &Op) {
        let (held, room) = (self.oracle.len(), self.room());
        match *op {
            Op::Put(n) => {
                let bytes = self.fresh(n);
                let put = self.ring.put(&bytes);
                if n <= room {
                    self.oracle.extend(bytes);
                    assert_eq!(put, Ok(()));
                } else {
                    assert_eq!(put, Err(ReserveError { requested: n, available: room }));
                }
            }
            Op::Get(n) => {
                let mut into = vec![0; n];
                let got = self.ring.get(&mut into);
                if n <= held {
                    assert_eq!(got, Ok(()));
                    assert!(self.oracle.drain(..n).eq(into));
                } else {
                    assert_eq!(got, Err(GetError { requested: n, available: held }));
                    assert!(into.iter().all(|&byte| byte == 0), "bytes of a `get` that failed");
                }
            }
            Op::Reserve(n, m) => {
                let (n, m) = (n.min(room), m.min(n).min(room));
                let bytes = self.fresh(n);
                let lent = self.ring.reserve(n).unwrap();
                assert_eq!(lent.len(), n);
                lent.copy_from_slice(&bytes);
                self.ring.commit(m);
                self.oracle.extend(&bytes[..m]);
            }
            Op::ForgetRoom(n) => {
                let lent = self.ring.reserve(n.min(room)).unwrap();
                lent.fill(0xFF);
                #[allow(clippy::mem_forget, reason = "it is what this is about")]
                mem::forget(Box::new(lent));
            }
            Op::Consume(n) => {
                let n = n.min(held);
                self.ring.consume(n);
                self.oracle.drain(..n);
            }
            Op::Write(n) => {
                let bytes = self.fresh(n);
                let written = self.ring.put_some(&bytes);
                assert_eq!(written, n.min(room));
                self.oracle.extend(&bytes[..written]);
            }
            Op::Read(n) => {
                let mut into = vec![0; n];
                let read = self.ring.get_some(&mut into);
                assert_eq!(read, n.min(held));
                assert!(self.oracle.drain(..read).eq(into[..read].iter().copied()));
            }
            Op::Change(n) => {
                let filled = self.ring.peek_mut();
                assert_eq!(filled.len(), held);
                filled.iter_mut().take(n).for_each(|byte| *byte ^= 0xA5);
                self.oracle.iter_mut().take(n).for_each(|byte| *byte ^= 0xA5);
            }
            Op::Clear => {
                self.ring.clear();
                self.oracle.clear();
            }
        }
        let now = (self.ring.len(), self.ring.spare_capacity());
        assert_eq!(now, (self.oracle.len(), self.room()));
        assert_eq!(self.ring.is_empty(), self.oracle.is_empty());
        let (first, second) = self.oracle.as_slices();
        let (front, back) = self.ring.peek().split_at(first.len());
        assert!(front == first && back == second, "the ring holds other bytes");
    }
}

proptest! {
    // Builds with a defect fail on purpose, and are not to leave their cases to the sound one.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mapped_ring_is_a_queue(ops in vec(op(), 1..200)) {
        let mut pair = Pair::new(crate::mapped(1));
        ops.iter().for_each(|op| pair.step(op));
    }

    #[test]
    fn a_channel_is_a_queue(ops in vec(op(), 1..200)) {
        let mut pair = Pair::new(ends(1));
        ops.iter().for_each(|op| pair.step(op));
    }

    #[test]
    fn a_copying_ring_is_a_queue(capacity in 1..5000usize, ops in vec(op(), 1..200)) {
        let mut pair = Pair::new(crate::copying(capacity));
        ops.iter().for_each(|op| pair.step(op));
    }
}
