//! Users' parts that give more than they are asked for.

use bufcore::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, PoolStats};
use bufslot::{SlotPool, Writer};

/// A fallback that hands out twice what it is asked for.
struct Generous(HeapPool);

impl BufferPool for Generous {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        self.0.acquire(2 * capacity)
    }

    fn max_capacity(&self) -> usize {
        self.0.max_capacity() / 2
    }

    fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

/// T31: what a buffer can hold is what the pool was asked for, also where the fallback gives more.
#[test]
fn t31_generous_fallback() {
    let mut pool = SlotPool::builder()
        .slots(1)
        .capacity(8)
        .build_with(Generous(HeapPool::new()))
        .expect("settings are right");
    assert_eq!(pool.acquire(100).expect("the heap serves").capacity(), 100);
    assert_eq!(pool.acquire_zeroed(100).expect("the heap serves").capacity(), 100);
    let mut writer = Writer::new(pool);
    writer.extend_from_slice(&[1; 100]).expect("the heap serves");
    assert_eq!(writer.finish().capacity(), 100);
}

/// A fallback that others take buffers of: what a snapshot says of the most covers what is out.
#[cfg(feature = "stats")]
#[test]
fn others_buffers_of_the_fallback_raise_the_marks() {
    struct Shared(std::rc::Rc<std::cell::Cell<usize>>);

    impl BufferPool for Shared {
        type Lease = HeapLease;

        fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
            HeapPool::new().acquire(capacity)
        }

        fn max_capacity(&self) -> usize {
            1 << 20
        }

        fn stats(&self) -> PoolStats {
            let mut stats = PoolStats::default();
            (stats.in_use, stats.in_use_bytes) = (self.0.get(), 100 * self.0.get());
            stats
        }
    }

    let theirs = std::rc::Rc::default();
    let fallback = Shared(std::rc::Rc::clone(&theirs));
    let pool = SlotPool::builder().capacity(1000).slots(4).build_with(fallback).expect("settings are right");
    theirs.set(7);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.high_water), (7, 7));
    assert_eq!((stats.in_use_bytes, stats.high_water_bytes), (700, 700));
}
