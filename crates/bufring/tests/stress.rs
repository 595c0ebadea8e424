//! Rings under load: each thread has its own, made for it or as a
//! variable of the thread. Their buffers go everywhere.

use bufring::bufcore::{AcquireError, Buf, BufferPool, PoolStats};
use bufring::{LocalAcquire, LocalError, LocalRing, RingLease, RingPool};
use testkit::stress::pools::{Subject, round};
use testkit::stress::run;

const BYTES: usize = 128 << 10;

thread_local! {
    static RING: LocalRing = const { LocalRing::new(BYTES) };
}

/// The ring of whichever thread asks.
struct Local;

impl BufferPool for Local {
    type Lease = RingLease;

    fn acquire(&mut self, bytes: usize) -> Result<Buf<RingLease>, AcquireError> {
        RING.acquire(bytes).map_err(|error| match error {
            LocalError::Acquire(error) => error,
            other => panic!("{other}"),
        })
    }

    fn max_capacity(&self) -> usize {
        RING.with_ring(|ring| ring.max_capacity()).expect("settings are right")
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

/// Nothing is out, and the largest request is served.
fn at_rest(ring: &mut RingPool) {
    assert!(ring.is_idle(), "buffers that never came back");
    let bytes = ring.max_capacity();
    assert_eq!(ring.acquire(bytes).map(|buf| buf.capacity() >= bytes), Ok(true), "all is free");
}

fn main() {
    let owned = Subject::<RingPool, ()> {
        shared: |_| (),
        pool: |()| RingPool::new(BYTES).expect("settings are right"),
        own: |_, _, _| {},
        at_rest,
    };
    let local = Subject::<Local, ()> { shared: |_| (), pool: |()| Local, own: |_, _, _| {}, at_rest: |_| {} };
    run("ring", &[("owned", &|one| round(&owned, one)), ("local", &|one| round(&local, one))]);
}
