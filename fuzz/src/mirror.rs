//! Operations on mirrored rings, mapped and copying, and on both ends of a channel, and on a `VecDeque`.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::Duration;

use bufcore::{Region, ReserveError};
use bufmirror::{Builder, Consumer, GetError, MirrorRing, Producer, WaitError, channel};
use buftest::bytes::Bytes;
use buftest::lockstep::panics;

/// A queue of bytes. The ends of a channel are in one thread's hands here.
trait Ring {
    fn capacity(&self) -> usize;
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError>;
    fn commit(&mut self, n: usize);
    fn peek(&mut self) -> &[u8];
    fn consume(&mut self, n: usize);
    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError>;
    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError>;
    fn put_some(&mut self, bytes: &[u8]) -> usize;
    fn get_some(&mut self, into: &mut [u8]) -> usize;
    /// Waits for no time: that many bytes of room, and that many to read.
    fn wait(&mut self, room: usize, filled: usize) -> Option<[Result<(), WaitError>; 2]>;
}

impl Ring for MirrorRing {
    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.reserve(n)
    }

    fn commit(&mut self, n: usize) {
        self.commit(n);
    }

    fn peek(&mut self) -> &[u8] {
        assert_eq!((*self).len() + (*self).spare_capacity(), (*self).capacity());
        (*self).peek()
    }

    fn consume(&mut self, n: usize) {
        self.consume(n);
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.put(bytes)
    }

    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        self.get(into)
    }

    fn put_some(&mut self, bytes: &[u8]) -> usize {
        self.write(bytes).expect("a ring never fails")
    }

    fn get_some(&mut self, into: &mut [u8]) -> usize {
        self.read(into).expect("a ring never fails")
    }

    fn wait(&mut self, _: usize, _: usize) -> Option<[Result<(), WaitError>; 2]> {
        None
    }
}

struct Ends(Producer, Consumer);

impl Ring for Ends {
    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.0.reserve(n)
    }

    fn commit(&mut self, n: usize) {
        self.0.commit(n);
    }

    fn peek(&mut self) -> &[u8] {
        self.1.peek()
    }

    fn consume(&mut self, n: usize) {
        self.1.consume(n);
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.0.put(bytes)
    }

    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        self.1.get(into)
    }

    fn put_some(&mut self, bytes: &[u8]) -> usize {
        self.0.put_some(bytes)
    }

    fn get_some(&mut self, into: &mut [u8]) -> usize {
        self.1.get_some(into)
    }

    fn wait(&mut self, room: usize, filled: usize) -> Option<[Result<(), WaitError>; 2]> {
        Some([self.0.wait_timeout(room, Duration::ZERO), self.1.wait_timeout(filled, Duration::ZERO)])
    }
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let pages = 1 + bytes.below(3);
    match bytes.below(4) {
        0 => compare(MirrorRing::new(4096 * pages).expect("the system maps"), &mut bytes),
        1 => {
            let (producer, consumer) = channel(4096 * pages).expect("the system maps");
            compare(Ends(producer, consumer), &mut bytes);
        }
        _ => {
            let region = Region::heap(2 + usize::from(bytes.number()) % 6000, 1).expect("the heap has room");
            if let Ok(ring) = Builder::new().build_in(region) {
                compare(ring, &mut bytes);
            }
        }
    }
}

fn compare(mut ring: impl Ring, bytes: &mut Bytes<'_>) {
    let mut oracle: VecDeque<u8> = VecDeque::new();
    let mut next = 0_u8;
    let mut fresh = |n: usize| {
        let more: Vec<u8> = (0..n).map(|at| next.wrapping_add(at as u8)).collect();
        next = next.wrapping_add(n as u8).wrapping_mul(5).wrapping_add(1);
        more
    };
    for _ in 0..200 {
        if bytes.is_empty() {
            break;
        }
        let (kind, n) = (bytes.below(12), bytes.size());
        let (held, room) = (oracle.len(), ring.capacity() - oracle.len());
        match kind {
            0..=2 => {
                let more = fresh(n);
                let put = ring.put(&more);
                if n <= room {
                    oracle.extend(more);
                    assert_eq!(put, Ok(()));
                } else {
                    assert_eq!(put, Err(ReserveError { requested: n, available: room }));
                }
            }
            3..=4 => {
                let mut into = vec![0; n];
                let got = ring.get(&mut into);
                if n <= held {
                    assert_eq!(got, Ok(()));
                    assert!(oracle.drain(..n).eq(into), "other bytes were read");
                } else {
                    assert_eq!(got, Err(GetError { requested: n, available: held }));
                    assert!(into.iter().all(|&byte| byte == 0), "bytes of a `get` that failed");
                }
            }
            5..=6 => match ring.reserve(n) {
                Ok(lent) => {
                    assert!(n <= room && lent.len() == n, "{} of {n} bytes", lent.len());
                    let more = fresh(n);
                    lent.copy_from_slice(&more);
                    let part = bytes.size() % (n + 1);
                    ring.commit(part);
                    oracle.extend(&more[..part]);
                }
                Err(error) => assert_eq!(error, ReserveError { requested: n, available: room }),
            },
            7 => {
                let lent = ring.reserve(n % (room + 1)).expect("there is room");
                lent.fill(0xFF);
                assert!(panics(|| ring.commit(room + 1 + n)), "more was committed than there is room");
            }
            8 => {
                assert!(panics(|| ring.consume(held + 1 + n)), "more was consumed than there is");
                let n = n % (held + 1);
                ring.consume(n);
                oracle.drain(..n);
            }
            9 => {
                let more = fresh(n);
                let written = ring.put_some(&more);
                assert_eq!(written, n.min(room));
                oracle.extend(&more[..written]);
            }
            10 => {
                let mut into = vec![0; n];
                let read = ring.get_some(&mut into);
                assert_eq!(read, n.min(held));
                assert!(oracle.drain(..read).eq(into[..read].iter().copied()), "other bytes were read");
            }
            _ => {
                let limit = ring.capacity();
                if let Some([for_room, filled]) = ring.wait(n, n) {
                    assert_eq!(for_room.is_ok(), n <= room, "{for_room:?}");
                    assert_eq!(filled.is_ok(), n <= held, "{filled:?}");
                    let too_long = matches!(for_room, Err(WaitError::TooLong { .. }));
                    assert_eq!(too_long, n > limit, "{for_room:?}");
                }
            }
        }
        let (first, second) = oracle.as_slices();
        assert_eq!(ring.peek().len(), oracle.len());
        let (front, back) = ring.peek().split_at(first.len());
        assert!(front == first && back == second, "the ring holds other bytes");
    }
}
