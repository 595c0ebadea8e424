//! Models of the release protocol, for every interleaving that loom finds.
//!
//! loom sees its own atomics and cells only, not the raw bytes of a region. So each model keeps a
//! `Shadow` cell that stands for the bytes of one block. It is written and read exactly where a
//! user of the buffer would, and a missing order between two users shows as a race on it.
//!
//! The ring's thread yields before it looks: loom starts from an execution in which the release
//! came first, and finds the other orders from there. (It notes only the last access to an atomic,
//! and a release reads the block's state before it stores it. From an execution that starts with
//! the ring's load, it would find no other.)
//!
//! With the mutants `relaxed` of `bufkit` and of `bufcore`, these models fail.

use alloc::vec::Vec;

use bufcore::Buf;
use bufkit::orphan;
use loom::sync::Arc;
use loom::thread;
use testkit::models::{self, Shadow, ends};

use crate::{RingLease, RingPool};

/// A ring with room for `buffers` buffers of eight bytes.
fn ring(buffers: usize) -> RingPool {
    let settings = RingPool::builder().capacity(8 * buffers).buffers(buffers);
    settings.build_in(ends::region(settings.required_bytes().expect("a few"))).expect("a small ring")
}

fn acquire(ring: &mut RingPool) -> Buf<RingLease> {
    let mut buf = ring.acquire(8).expect("a free block");
    // Views without bytes would hold nothing.
    buf.commit(8);
    buf
}

/// What the releasing thread did with the bytes happens before what their next owner does.
#[test]
fn loom_reuse_after_release_on_another_thread() {
    loom::model(|| {
        let mut ring = ring(1);
        let buf = acquire(&mut ring);
        models::reuse_after_the_last(ring, [buf]);
    });
}

/// Two blocks, released on two threads and merged: both reads happen before the memory of both is
/// written again.
#[test]
fn loom_merge_after_two_releases() {
    loom::model(|| {
        let mut ring = ring(2);
        let shadows = [Shadow::shared(), Shadow::shared()];
        let consumers: Vec<_> = shadows
            .iter()
            .map(|shadow| {
                let buf = acquire(&mut ring);
                shadow.write();
                let shadow = Arc::clone(shadow);
                thread::spawn(move || {
                    shadow.read();
                    drop(buf);
                })
            })
            .collect();
        thread::yield_now();
        if let Ok(both) = ring.acquire(ring.capacity()) {
            shadows.iter().for_each(|shadow| shadow.write());
            drop(both);
        }
        for consumer in consumers {
            consumer.join().unwrap();
        }
    });
}

/// Views dropped on two threads: both reads happen before the memory is written again.
#[test]
fn loom_reuse_after_the_last_of_two_views() {
    loom::model(|| {
        let mut ring = ring(1);
        let view = acquire(&mut ring).freeze();
        models::reuse_after_the_last(ring, [view.clone(), view]);
    });
}

/// Parts dropped on two threads: what both did happens before the memory is written again.
#[test]
fn loom_reuse_after_the_last_of_two_parts() {
    loom::model(|| {
        let mut ring = ring(1);
        let mut buf = acquire(&mut ring);
        let part = buf.split_off(4);
        models::reuse_after_the_last(ring, [part, buf]);
    });
}

/// A part that is the only handle left has all of the memory: what the other part's owner did with
/// it, it did before.
#[test]
fn loom_compact_after_the_other_part_is_gone() {
    loom::model(|| {
        let mut ring = ring(1);
        models::compact_after_the_other_part_is_gone(acquire(&mut ring));
    });
}

/// The only view left may be written to: what the other one read, it read before.
#[test]
fn loom_thaw_after_the_other_view_is_gone() {
    loom::model(|| {
        let mut ring = ring(1);
        models::thaw_after_the_other_view_is_gone(acquire(&mut ring));
    });
}

/// A ring that ends while its buffer is dropped elsewhere: the memory comes back after all that the
/// buffer's owner did.
#[test]
fn loom_ring_drop_against_release() {
    loom::model(|| {
        let mut ring = ring(1);
        let shadow = Shadow::shared();
        let buf = acquire(&mut ring);
        let consumer = {
            let shadow = Arc::clone(&shadow);
            thread::spawn(move || {
                shadow.write();
                drop(buf);
            })
        };
        thread::yield_now();
        match ring.into_region() {
            // Whoever has the region may write all of it.
            Ok(_) => shadow.write(),
            Err(ring) => drop(ring),
        }
        consumer.join().unwrap();
        orphan::sweep();
    });
}

/// The same with another buffer, which the ring's thread drops afterwards.
#[test]
fn loom_end_against_release() {
    loom::model(|| ends::against_a_release(ring(2)));
}

#[test]
fn loom_end_against_two_releases() {
    loom::model(|| ends::against_two_releases(ring(2)));
}

#[test]
fn loom_end_against_release_and_sweep() {
    loom::model(|| ends::against_a_release_and_a_sweep(ring(1)));
}

#[test]
fn loom_late_releases_free_the_memory_themselves() {
    loom::model(|| ends::late_releases_free_the_memory_themselves(ring(2)));
}

#[test]
fn loom_two_rings_left_behind() {
    loom::model(|| ends::two_pools_left_behind(ring));
}
