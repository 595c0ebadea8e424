//! Models of the release protocol, for every interleaving that loom finds.
//!
//! loom sees its own atomics and cells only, not the raw bytes of a region. So each model keeps a
//! `Shadow` cell that stands for the bytes of one slot. It is written and read exactly where a user
//! of the buffer would, and a missing order between two users shows as a race on it.
//!
//! The pool's thread yields before it looks: loom starts from an execution in which the release
//! came first, and finds the other orders from there. (It notes only the last access to an atomic,
//! and a release reads the slot's state before it stores it. From an execution that starts with the
//! pool's load, it would find no other.)
//!
//! With the mutants `relaxed` of `bufkit` and of `bufcore`, these models fail.

use bufcore::{AcquireError, Buf, BufferPool, NoFallback, NoLease, PoolStats};
use bufkit::orphan;
use loom::sync::Arc;
use loom::thread;
use testkit::models::{self, Shadow, ends};

use crate::{Builder, SlotLease, SlotPool};

type Pool = SlotPool<NoFallback>;
type Buffer = Buf<SlotLease<NoLease>>;

fn pool(slots: usize) -> Pool {
    let settings = Builder::new().slots(slots).capacity(8 * slots);
    let region = ends::region(settings.required_bytes().expect("a few"));
    settings.build_in(region, NoFallback).expect("a small pool")
}

fn acquire(pool: &mut Pool) -> Buffer {
    let mut buf = pool.acquire(8).expect("a free slot");
    // Views without bytes would hold nothing.
    buf.commit(8);
    buf
}

/// A pool that watches each of its slots as soon as it is out, as it does among many.
struct Crowd(Pool);

impl Crowd {
    fn of(slots: usize) -> Self {
        Self(pool(slots))
    }
}

impl BufferPool for Crowd {
    type Lease = SlotLease<NoLease>;

    fn acquire(&mut self, capacity: usize) -> Result<Buffer, AcquireError> {
        let buf = self.0.acquire(capacity);
        self.0.watch_all();
        buf
    }

    fn max_capacity(&self) -> usize {
        self.0.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.0.stats()
    }
}

/// What the releasing thread did with the bytes happens before what their next owner does.
#[test]
fn loom_reuse_after_release_on_another_thread() {
    loom::model(|| {
        let mut pool = pool(1);
        let buf = acquire(&mut pool);
        models::reuse_after_the_last(pool, [buf]);
    });
}

/// Views dropped on two threads: both reads happen before the memory is written again.
#[test]
fn loom_reuse_after_the_last_of_two_views() {
    loom::model(|| {
        let mut pool = pool(1);
        let view = acquire(&mut pool).freeze();
        models::reuse_after_the_last(pool, [view.clone(), view]);
    });
}

/// Parts dropped on two threads: what both did happens before the memory is written again.
#[test]
fn loom_reuse_after_the_last_of_two_parts() {
    loom::model(|| {
        let mut pool = pool(1);
        let mut buf = acquire(&mut pool);
        let part = buf.split_off(4);
        models::reuse_after_the_last(pool, [part, buf]);
    });
}

/// A part that is the only handle left has all of the memory: what the other part's owner did with
/// it, it did before.
#[test]
fn loom_compact_after_the_other_part_is_gone() {
    loom::model(|| {
        let mut pool = pool(1);
        models::compact_after_the_other_part_is_gone(acquire(&mut pool));
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

/// A pool that ends while its buffer is dropped elsewhere: the memory comes back after all that the
/// buffer's owner did.
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
        orphan::sweep();
    });
}

/// The same with another buffer, which the pool's thread drops afterwards.
#[test]
fn loom_end_against_release() {
    loom::model(|| ends::against_a_release(pool(2)));
}

#[test]
fn loom_end_against_two_releases() {
    loom::model(|| ends::against_two_releases(pool(2)));
}

#[test]
fn loom_end_against_release_and_sweep() {
    loom::model(|| ends::against_a_release_and_a_sweep(pool(1)));
}

#[test]
fn loom_late_releases_free_the_memory_themselves() {
    loom::model(|| ends::late_releases_free_the_memory_themselves(pool(2)));
}

#[test]
fn loom_two_pools_left_behind() {
    loom::model(|| ends::two_pools_left_behind(pool));
}

/// A release that is listed: what its thread did with the bytes happens before what their next
/// owner does.
#[test]
fn loom_reuse_after_listed_release() {
    loom::model(|| {
        let mut pool = Crowd::of(1);
        let buf = pool.acquire(8).expect("a free slot");
        models::reuse_after_the_last(pool, [buf]);
    });
}

/// Two releases that are listed at once: both slots are there again.
#[test]
fn loom_listed_releases() {
    loom::model(|| {
        let mut pool = Crowd::of(2);
        let bufs = [(); 2].map(|()| pool.acquire(8).expect("a free slot"));
        let consumers = bufs.map(|buf| thread::spawn(move || drop(buf)));
        thread::yield_now();
        let one = pool.acquire(8).is_ok();
        consumers.into_iter().for_each(|consumer| consumer.join().unwrap());
        assert!(pool.acquire(8).is_ok() && pool.0.is_idle(), "one was free before: {one}");
        assert!(pool.acquire(16).is_ok(), "both are free");
    });
}

/// A look at the list while a slot comes to it.
#[test]
fn loom_idle_against_listed_release() {
    loom::model(|| {
        let mut pool = Crowd::of(1);
        let buf = pool.acquire(8).expect("a free slot");
        let consumer = thread::spawn(move || drop(buf));
        thread::yield_now();
        let was_idle = pool.0.is_idle();
        consumer.join().unwrap();
        assert!(pool.0.into_region().is_ok(), "it was idle before: {was_idle}");
    });
}

/// A slot that is watched while it is released elsewhere is found again, and so is one that is
/// released afterwards.
#[test]
fn loom_watch_against_release() {
    loom::model(|| {
        let mut pool = pool(2);
        let (sent, kept) = (acquire(&mut pool), acquire(&mut pool));
        let consumer = thread::spawn(move || drop(sent));
        thread::yield_now();
        pool.watch_all();
        consumer.join().unwrap();
        drop(kept);
        // A sweep finds the one that was being released.
        pool.credit = 2;
        assert!(pool.acquire(16).is_ok(), "both are free");
    });
}

#[test]
fn loom_end_of_a_crowd_against_release() {
    loom::model(|| ends::against_a_release(Crowd::of(2)));
}

#[test]
fn loom_end_of_a_crowd_against_two_releases() {
    loom::model(|| ends::against_two_releases(Crowd::of(2)));
}

#[test]
fn loom_end_of_a_crowd_against_release_and_sweep() {
    loom::model(|| ends::against_a_release_and_a_sweep(Crowd::of(1)));
}

#[test]
fn loom_late_releases_of_a_crowd_free_the_memory_themselves() {
    loom::model(|| ends::late_releases_free_the_memory_themselves(Crowd::of(2)));
}

#[test]
fn loom_two_crowds_left_behind() {
    loom::model(|| ends::two_pools_left_behind(Crowd::of));
}
