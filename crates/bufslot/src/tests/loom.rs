//! Models of the release protocol, for every interleaving that loom finds.
//!
//! loom sees its own atomics and cells only, not the raw bytes of a region. So each model keeps a `Shadow` cell that stands for
//! the bytes of one slot: it is written and read exactly where a user of the buffer would, and a missing order between two users
//! shows as a race on it.
//!
//! The pool's thread yields before it looks: loom starts from an execution in which the release came first, and finds the other
//! orders from there. (It notes only the last access to an atomic, and a release reads the slot's state before it stores it: from
//! an execution that starts with the pool's load, it would find no other.)
//!
//! With `--cfg bufworks_broken="relaxed"` these models fail.

use alloc::vec::Vec;

use bufcore::strategy::orphans;
use bufcore::{Buf, BufferPool, NoLease, Reject};
use buftest::models::{self, Shadow};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::{Builder, SlotLease, SlotPool};

type Pool = SlotPool<Reject>;
type Buffer = Buf<SlotLease<NoLease>>;

fn pool(slots: usize) -> Pool {
    Builder::new().slots(slots).capacity(8 * slots).build_with(Reject).expect("a small pool")
}

fn acquire(pool: &mut Pool) -> Buffer {
    pool.acquire(8).expect("a free slot")
}

loom::lazy_static! {
    /// Stands for the memory of the one pool of a model that ends.
    static ref MEMORY: Shadow = Shadow::default();
    static ref FREED: AtomicUsize = AtomicUsize::new(0);
}

/// The memory of a pool that has ended is given back.
pub(crate) fn memory_goes() {
    MEMORY.write();
    // ORDER: Relaxed: counted outside of the model; the shadow of the memory sees the orders.
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Uses the memory, as the owner of a buffer.
fn touch() {
    MEMORY.read();
}

/// Asserts that the memory has gone, once.
fn gone() {
    orphans::sweep();
    assert_eq!(orphans::pending(), 0);
    // ORDER: Relaxed: read after all threads were joined.
    assert_eq!(FREED.load(Ordering::Relaxed), 1, "freed once");
}

/// What the releasing thread did with the bytes happens before what their next owner does.
#[test]
fn loom_reuse_after_release_on_another_thread() {
    loom::model(|| {
        let mut pool = pool(1);
        let shadow = Shadow::shared();
        let buf = acquire(&mut pool);
        shadow.write();
        let consumer = {
            let shadow = Arc::clone(&shadow);
            thread::spawn(move || {
                assert_eq!(shadow.read(), 1);
                drop(buf);
            })
        };
        thread::yield_now();
        // No second look: a queue that both sides read again would order what the slot alone does not.
        if let Ok(again) = pool.acquire(8) {
            shadow.write();
            drop(again);
        }
        consumer.join().unwrap();
    });
}

/// Views dropped on two threads: both reads happen before the memory is written again.
#[test]
fn loom_reuse_after_the_last_of_two_views() {
    loom::model(|| {
        let mut pool = pool(1);
        let shadow = Shadow::shared();
        let buf = acquire(&mut pool);
        shadow.write();
        let view = buf.freeze();
        let consumers: Vec<_> = [view.clone(), view]
            .into_iter()
            .map(|view| {
                let shadow = Arc::clone(&shadow);
                thread::spawn(move || {
                    assert_eq!(shadow.read(), 1);
                    drop(view);
                })
            })
            .collect();
        thread::yield_now();
        if let Ok(again) = pool.acquire(8) {
            shadow.write();
            drop(again);
        }
        for consumer in consumers {
            consumer.join().unwrap();
        }
    });
}

/// The only view left may be written to: what the other one read, it read before.
#[test]
fn loom_thaw_after_the_other_view_is_gone() {
    loom::model(|| {
        let mut pool = pool(1);
        models::thaw_after_the_other_view_is_gone(acquire(&mut pool));
    });
}

/// A pool that ends while its buffer is dropped elsewhere: the memory comes back after all that the buffer's owner did.
#[test]
fn loom_pool_drop_against_release() {
    loom::model(|| {
        let mut pool = pool(1);
        let shadow = Shadow::shared();
        let buf = acquire(&mut pool);
        let consumer = {
            let shadow = Arc::clone(&shadow);
            thread::spawn(move || {
                shadow.write();
                drop(buf);
            })
        };
        thread::yield_now();
        match pool.into_region() {
            // Whoever has the region may write all of it.
            Ok(_) => shadow.write(),
            Err(pool) => drop(pool),
        }
        consumer.join().unwrap();
        orphans::sweep();
    });
}

/// The same with another buffer, which the pool's thread drops afterwards: whoever is last frees, once, after both.
#[test]
fn loom_end_against_release() {
    loom::model(|| {
        let mut pool = pool(2);
        let (sent, kept) = (acquire(&mut pool), acquire(&mut pool));
        let consumer = thread::spawn(move || {
            touch();
            drop(sent);
        });
        thread::yield_now();
        touch();
        drop(pool);
        drop(kept);
        consumer.join().unwrap();
        gone();
    });
}

/// Both buffers are dropped elsewhere while the pool ends.
#[test]
fn loom_end_against_two_releases() {
    loom::model(|| {
        let mut pool = pool(2);
        let threads = [(); 2].map(|()| {
            let buf = acquire(&mut pool);
            thread::spawn(move || {
                touch();
                drop(buf);
            })
        });
        thread::yield_now();
        drop(pool);
        for thread in threads {
            thread.join().unwrap();
        }
        gone();
    });
}

/// A pool ends while its buffer is dropped on one thread, and another sweeps.
#[test]
fn loom_end_against_release_and_sweep() {
    loom::model(|| {
        let mut pool = pool(1);
        let buf = acquire(&mut pool);
        let consumer = thread::spawn(move || {
            touch();
            drop(buf);
        });
        let sweeper = thread::spawn(orphans::sweep);
        thread::yield_now();
        drop(pool);
        consumer.join().unwrap();
        sweeper.join().unwrap();
        gone();
    });
}

/// Buffers that see that their pool is gone leave nothing to a later sweep, also when two threads are last together.
#[test]
fn loom_late_releases_free_the_memory_themselves() {
    loom::model(|| {
        let mut pool = pool(2);
        let buffers = [acquire(&mut pool), acquire(&mut pool)];
        drop(pool);
        assert_eq!(orphans::pending(), 1);
        let threads = buffers.map(|buf| {
            thread::spawn(move || {
                touch();
                drop(buf);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(orphans::pending(), 0);
        gone();
    });
}

/// Two pools left behind at once, each swept by whoever comes.
#[test]
fn loom_two_pools_left_behind() {
    loom::model(|| {
        let threads = [(), ()].map(|()| {
            thread::spawn(|| {
                let mut pool = pool(1);
                let buf = acquire(&mut pool);
                drop(pool);
                drop(buf);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(orphans::pending(), 0);
    });
}
