//! The lockstep itself: it goes through any program, and sees what is wrong.

use bufcore::HeapPool;

use super::*;
use crate::bytes::Bytes;

/// Any bytes are a program that a sound pool passes, with buffers that are exchanged.
#[test]
fn bytes_are_programs() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let program: Vec<u8> = (0..600).map(|_| rng.u8(..)).collect();
        let mut bytes = Bytes::new(&program);
        let mut lockstep = Lockstep::over(HeapPool::new(), false);
        while !bytes.is_empty() {
            match bytes.below(8) {
                0 => lockstep.exchange(bytes.below(256), |pool, buf| {
                    let mut other = pool.acquire(buf.capacity()).expect("the heap serves");
                    other.extend_from_slice(&buf).expect("as much room");
                    other
                }),
                _ => lockstep.step(Op::decode(&mut bytes)),
            }
            lockstep.compare();
        }
        lockstep.drop_all();
        assert!(lockstep.is_clear());
        lockstep.finish(seed % 2 == 0);
    }
}

#[test]
#[should_panic(expected = "differs")]
fn other_bytes_are_seen() {
    let mut lockstep = Lockstep::over(HeapPool::new(), false);
    let mut buf = lockstep.pool().acquire(10).expect("the heap serves");
    buf.resize(10, 1).expect("asked for");
    lockstep.admit(buf, 10, vec![2; 10]);
    lockstep.compare();
}
