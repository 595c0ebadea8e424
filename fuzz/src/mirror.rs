//! Operations on mirrored rings, mapped and copying, and on both ends of a channel, and on a `VecDeque`.

use std::collections::VecDeque;
use std::time::Duration;

use bufcore::{Region, ReserveError};
use bufmirror::{Builder, GetError, MirrorRing, WaitError};
use buftest::bytes::Bytes;
use buftest::lockstep::panics;

// The suite of `bufmirror` has its own uses for it, and needs more of it.
#[allow(dead_code, reason = "see above")]
#[path = "../../crates/bufmirror/tests/it/ring.rs"]
mod ring;

use self::ring::{Ends, Ring, ends};

/// Waits for no time: for `room` bytes of room, and for `filled` bytes to read.
trait Waits: Ring {
    fn wait(&mut self, room: usize, filled: usize) -> Option<[Result<(), WaitError>; 2]>;
}

impl Waits for MirrorRing {
    fn wait(&mut self, _: usize, _: usize) -> Option<[Result<(), WaitError>; 2]> {
        None
    }
}

impl Waits for Ends {
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
        1 => compare(ends(4096 * pages), &mut bytes),
        _ => {
            let region = Region::heap(2 + usize::from(bytes.number()) % 6000, 1).expect("the heap has room");
            if let Ok(ring) = Builder::new().build_in(region) {
                compare(ring, &mut bytes);
            }
        }
    }
}

fn compare(mut ring: impl Waits, bytes: &mut Bytes<'_>) {
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
        assert_eq!((ring.len(), ring.spare_capacity()), (oracle.len(), ring.capacity() - oracle.len()));
        let (front, back) = ring.peek().split_at(first.len());
        assert!(front == first && back == second, "the ring holds other bytes");
    }
}
