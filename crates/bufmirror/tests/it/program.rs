//! Programs of operations on a ring and on a `VecDeque`, read from bytes, compared after each step.

use std::collections::VecDeque;
use std::mem;

use bufmirror::bufcore::ReserveError;
use bufmirror::{GetError, WaitError};
use testkit::bytes::Bytes;
use testkit::lockstep::panics;

use super::ring::Ring;

/// Steps of the longest program.
const STEPS: usize = 200;

struct Pair<R> {
    ring: R,
    oracle: VecDeque<u8>,
    /// What is written next.
    next: u8,
}

/// Runs one program.
pub(crate) fn run(ring: impl Ring, bytes: &mut Bytes<'_>) {
    let mut pair = Pair { ring, oracle: VecDeque::new(), next: 0 };
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        pair.step(bytes);
        pair.compare();
    }
}

impl<R: Ring> Pair<R> {
    fn fresh(&mut self, n: usize) -> Vec<u8> {
        let next = self.next;
        self.next = next.wrapping_add(n as u8).wrapping_mul(5).wrapping_add(1);
        (0..n).map(|at| next.wrapping_add(at as u8)).collect()
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let kind = match bytes.byte() {
            byte @ 0..192 => byte % 12,
            byte => 12 + byte % 3,
        };
        let n = bytes.size();
        let (held, room) = (self.oracle.len(), self.ring.capacity() - self.oracle.len());
        match kind {
            0..=2 => {
                let more = self.fresh(n);
                let put = self.ring.put(&more);
                if n <= room {
                    self.oracle.extend(more);
                    assert_eq!(put, Ok(()));
                } else {
                    assert_eq!(put, Err(ReserveError { requested: n, available: room }));
                }
            }
            3..=4 => {
                let mut into = vec![0; n];
                let got = self.ring.get(&mut into);
                if n <= held {
                    assert_eq!(got, Ok(()));
                    assert!(self.oracle.drain(..n).eq(into), "other bytes were read");
                } else {
                    assert_eq!(got, Err(GetError { requested: n, available: held }));
                    assert!(into.iter().all(|&byte| byte == 0), "bytes of a `get` that failed");
                }
            }
            5..=6 => {
                let more = self.fresh(n);
                match self.ring.reserve(n) {
                    Ok(lent) => {
                        assert!(n <= room && lent.len() == n, "{} of {n} bytes", lent.len());
                        lent.copy_from_slice(&more);
                        let part = bytes.size() % (n + 1);
                        self.ring.commit(part);
                        self.oracle.extend(&more[..part]);
                    }
                    Err(error) => assert_eq!(error, ReserveError { requested: n, available: room }),
                }
            }
            7 => {
                let lent = self.ring.reserve(n % (room + 1)).expect("there is room");
                lent.fill(0xFF);
                let ring = &mut self.ring;
                assert!(panics(|| ring.commit(room + 1 + n)), "more was committed than there is room");
            }
            8 => {
                let ring = &mut self.ring;
                assert!(panics(|| ring.consume(held + 1 + n)), "more was consumed than there is");
                let n = n % (held + 1);
                ring.consume(n);
                self.oracle.drain(..n);
            }
            9 => {
                let more = self.fresh(n);
                let written = self.ring.put_some(&more);
                assert_eq!(written, n.min(room));
                self.oracle.extend(&more[..written]);
            }
            10 => {
                let mut into = vec![0; n];
                let read = self.ring.get_some(&mut into);
                assert_eq!(read, n.min(held));
                assert!(self.oracle.drain(..read).eq(into[..read].iter().copied()), "other bytes were read");
            }
            11 => {
                let limit = self.ring.capacity();
                if let Some([for_room, filled]) = self.ring.wait(n, n) {
                    assert_eq!(for_room.is_ok(), n <= room, "{for_room:?}");
                    assert_eq!(filled.is_ok(), n <= held, "{filled:?}");
                    let too_long = matches!(for_room, Err(WaitError::TooLong { .. }));
                    assert_eq!(too_long, n > limit, "{for_room:?}");
                }
            }
            12 => {
                let lent = self.ring.reserve(n.min(room)).expect("there is room");
                lent.fill(0xFF);
                #[allow(clippy::mem_forget, reason = "it is what this is about")]
                mem::forget(Box::new(lent));
            }
            13 => {
                let filled = self.ring.peek_mut();
                assert_eq!(filled.len(), held);
                filled.iter_mut().take(n).for_each(|byte| *byte ^= 0xA5);
                self.oracle.iter_mut().take(n).for_each(|byte| *byte ^= 0xA5);
            }
            _ => {
                self.ring.clear();
                self.oracle.clear();
            }
        }
    }

    fn compare(&mut self) {
        let now = (self.ring.len(), self.ring.spare_capacity());
        assert_eq!(now, (self.oracle.len(), self.ring.capacity() - self.oracle.len()));
        assert_eq!(self.ring.is_empty(), self.oracle.is_empty());
        let (first, second) = self.oracle.as_slices();
        assert_eq!(self.ring.peek().len(), self.oracle.len());
        let (front, back) = self.ring.peek().split_at(first.len());
        assert!(front == first && back == second, "the ring holds other bytes");
    }
}
