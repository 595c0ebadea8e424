//! T10, T13 and T17: a pool serves from what it has, and counts what it does.

use std::collections::HashMap;

use bufcore::BufferPool;

use super::scaled;
use crate::Kit;
use crate::model::Shadow;

/// Checks that 2, then 64 pools used in turn on one thread serve at least 90 % as many as one, and
/// nothing crosses over (T10).
pub fn pools_in_turn<P: BufferPool>(kit: &Kit<P>) {
    let rounds = scaled(100_000);
    // One that holds no memory of its own takes it from the allocator, which may pass an address
    // from one pool to another.
    let has_own_memory = (kit.make)().stats().reserved_bytes > 0;
    let served_by = |pools: usize| {
        let mut pools: Vec<P> = (0..pools).map(|_| (kit.make)()).collect();
        let shadow = Shadow::new();
        // The addresses that each pool's buffers had, to see that no other pool hands them out from
        // its own memory.
        let mut owners: HashMap<usize, usize> = HashMap::new();
        let count = pools.len();
        let mut hits = 0;
        for round in 0..rounds {
            let owner = round % count;
            let pool = &mut pools[owner];
            let Ok(buf) = pool.acquire(64 + round % 200) else {
                assert!(kit.rejects, "an ordinary request was refused");
                continue;
            };
            drop(shadow.claim(buf.as_ptr(), buf.capacity()));
            if !(kit.is_fallback)(&buf) {
                hits += 1;
                if has_own_memory && pool.stats().reserved_bytes > 0 {
                    let first = *owners.entry(buf.as_ptr().addr()).or_insert(owner);
                    assert_eq!(first, owner, "a buffer of pool {first} came out of pool {owner}");
                }
            }
        }
        hits
    };
    let one = served_by(1);
    assert!(one * 10 >= rounds * 9, "one pool alone served {one} of {rounds}");
    for pools in [2, 64] {
        let hits = served_by(pools);
        assert!(hits * 10 >= one * 9, "{pools} pools in turn served {hits}, one served {one}");
    }
}

/// Checks that with one small buffer held for ever, the pool serves at least 99 % of a hundred
/// thousand other requests (T13).
pub fn one_held<P: BufferPool>(kit: &Kit<P>) {
    for position in 0..4 {
        let mut pool = (kit.make)();
        // The held one is the first, or one behind others that went back.
        let mut before: Vec<_> =
            (0..position).map(|_| pool.acquire(1000).expect("an ordinary request")).collect();
        let held = pool.acquire(8).expect("a small request");
        before.clear();
        let mut rng = fastrand::Rng::with_seed(13 + position);
        let mut ring: Vec<_> = (0..4).map(|_| None).collect();
        let requests = scaled(100_000);
        let mut served = 0;
        for request in 0..requests {
            let slot = request % ring.len();
            ring[slot] = None;
            if let Ok(buf) = pool.acquire(rng.usize(1..2000)) {
                served += usize::from(!(kit.is_fallback)(&buf));
                ring[slot] = Some(buf);
            } else {
                assert!(kit.rejects);
            }
        }
        assert!(served * 100 >= requests * 99, "{served} of {requests} served beside one that is held");
        assert_eq!(held.capacity().max(8), held.capacity());
    }
}

/// Checks that counters count each request and what is out, and that everything comes back (T17).
/// Generated programs ([`ops`](crate::ops)) check that they add up.
pub fn counters<P: BufferPool>(kit: &Kit<P>, counted: bool) {
    let mut pool = (kit.make)();
    let mut rng = fastrand::Rng::with_seed(17);
    let mut out = Vec::new();
    let (mut acquired, mut fallbacks, mut most) = (0_u64, 0_u64, 0);
    for step in 0..2000 {
        if rng.u8(..) < 140 {
            let Ok(buf) = pool.acquire(rng.usize(1..5000)) else { continue };
            acquired += 1;
            fallbacks += u64::from((kit.is_fallback)(&buf));
            out.push(buf);
            most = most.max(out.len());
        } else if !out.is_empty() {
            drop(out.swap_remove(rng.usize(..out.len())));
        }
        let stats = pool.stats();
        let found = (stats.acquired, stats.fallbacks, stats.in_use, stats.high_water);
        if counted {
            assert_eq!(found, (acquired, fallbacks, out.len(), most), "step {step}");
        }
    }
    drop(out);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0), "all was released: {stats:?}");
    let counts = (stats.acquired, stats.high_water);
    assert!(if counted { acquired > 500 } else { counts == (0, 0) }, "counted without being told to");
}
