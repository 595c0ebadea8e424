//! Models of pieces larger than a shard, and of trims that reach into the caches of other threads.
//! The head of `loom` says what stands for the bytes.

use alloc::vec::Vec;
use core::time::Duration;

use bufkit::sync::lock;
use loom::thread;
use testkit::models::{self, Shadow};

use super::loom::{Buffer, beside, briefly, freed, read_elsewhere, scribble, use_up};
use crate::BumpPool;
use crate::cache::local;
use crate::shard::Chain;
use crate::shared::Shared;

/// More than a shard.
const LARGE: usize = 16;

/// A pool with shards of 8 bytes that keeps `pieces` pieces.
fn pool(pieces: usize) -> BumpPool {
    BumpPool::builder().shard_size(8).max_idle_bytes(pieces * LARGE).build().expect("a small pool")
}

fn acquire(pool: &BumpPool) -> Buffer {
    pool.acquire(LARGE).expect("the allocator has room")
}

/// Uses a piece.
fn once(pool: &BumpPool) {
    let buf = acquire(pool);
    scribble(&buf);
    drop(buf);
}

/// What the releasing thread did with the bytes happens before what their next owner does.
#[test]
fn loom_kept_piece_after_release_on_another_thread() {
    loom::model(|| {
        let pool = pool(1);
        let shadow = Shadow::shared();
        let buf = acquire(&pool);
        let address = buf.as_ptr();
        shadow.write();
        let consumer = read_elsewhere(buf, &shadow, 1);
        thread::yield_now();
        drop(models::acquire_again(&pool, LARGE, address, &shadow));
        consumer.join().unwrap();
    });
}

/// Two threads use the one piece that is kept, or none: nobody else has it meanwhile.
#[test]
fn loom_pieces_go_round() {
    briefly(2, || {
        let pool = pool(1);
        // The table is there before the threads: it is made in a `OnceLock`, of which loom sees
        // nothing.
        drop(acquire(&pool));
        let threads = [(), ()].map(|()| {
            beside(&pool, |pool| {
                once(&pool);
                local::end_of_thread();
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let stats = pool.stats();
        assert!(stats.in_use == 0 && stats.reserved_bytes <= LARGE, "{stats:?}");
    });
}

/// The pool ends while a piece comes back to it: it is freed once, by either.
#[test]
fn loom_end_of_a_pool_against_a_piece() {
    loom::model(|| {
        let pool = pool(1);
        let buf = acquire(&pool);
        let consumer = thread::spawn(move || use_up(buf));
        thread::yield_now();
        drop(pool);
        consumer.join().unwrap();
        assert_eq!(freed(), 1, "freed once");
    });
}

/// A thread puts shards aside and uses them again while another trims, and looks.
fn spares_against(what: fn(&BumpPool)) {
    briefly(1, move || {
        let pool = pool(2);
        let owner = beside(&pool, |pool| {
            for _ in 0..2 {
                let bufs: Vec<_> = (0..2).map(|_| pool.acquire(8).expect("room")).collect();
                bufs.iter().for_each(scribble);
            }
            local::end_of_thread();
        });
        what(&pool);
        owner.join().unwrap();
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
    });
}

#[test]
fn loom_trim_against_spares() {
    spares_against(BumpPool::trim);
}

#[test]
fn loom_looks_against_spares() {
    spares_against(|pool| (0..2).for_each(|_| pool.trim_idle(Duration::ZERO)));
}

/// A thread has a shard on its list whose buffer another thread releases, which trims then, or
/// looks, while the first continues.
fn lists_against(preemptions: usize, what: fn(&BumpPool), then: fn(&BumpPool, Buffer)) {
    briefly(preemptions, move || {
        let pool = pool(1);
        let take = || pool.acquire(8).expect("room");
        let (first, second) = (take(), take());
        let other = beside(&pool, move |pool| {
            use_up(first);
            what(&pool);
        });
        then(&pool, second);
        local::end_of_thread();
        other.join().unwrap();
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
    });
}

/// The owner needs another shard: the one of its list, or what is left of it, or a new one.
#[test]
fn loom_trim_against_a_search() {
    lists_against(2, BumpPool::trim, |pool, second| {
        let third = pool.acquire(8).expect("room");
        scribble(&third);
        drop((second, third));
    });
}

#[test]
fn loom_trim_against_the_end_of_a_list() {
    lists_against(2, BumpPool::trim, |_, second| drop(second));
}

#[test]
fn loom_looks_against_the_end_of_a_list() {
    let looks = |pool: &BumpPool| (0..2).for_each(|_| pool.trim_idle(Duration::ZERO));
    lists_against(1, looks, |_, second| drop(second));
}

/// The buffer of a listed shard comes back from a thread that does nothing else. Whoever trims
/// learns of that by the count alone, and frees the memory after the thread has used it.
#[test]
fn loom_trim_after_a_release_elsewhere() {
    loom::model(|| {
        let pool = pool(1);
        let (first, second) = (pool.acquire(8).expect("room"), pool.acquire(8).expect("room"));
        let consumer = thread::spawn(move || use_up(first));
        thread::yield_now();
        pool.trim();
        consumer.join().unwrap();
        pool.trim();
        assert_eq!(freed(), 1, "the memory of the shard that is listed");
        drop(second);
        local::end_of_thread();
    });
}

/// The owner releases the buffer of a shard on its list itself, and carves it once more: with that
/// buffer out, nobody takes it.
#[test]
fn loom_trim_against_a_shard_that_is_listed_again() {
    briefly(2, || {
        let pool = pool(1);
        let take = || pool.acquire(8).expect("room");
        let (first, second) = (take(), take());
        let other = beside(&pool, |pool| pool.trim());
        // The other begins, so that it may be amid its look.
        thread::yield_now();
        drop(first);
        let (third, fourth) = (take(), take());
        scribble(&third);
        drop((second, third, fourth));
        local::end_of_thread();
        other.join().unwrap();
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
    });
}

/// A shard goes to the list with its second buffer out, and no fence in between. Who looks at it
/// sees that buffer, also if its owner releases it meanwhile.
#[test]
fn loom_look_at_a_spare_that_is_listed() {
    let mut builder = loom::model::Builder::new();
    (builder.preemption_bound, builder.max_branches) = (Some(2), 4000);
    builder.check(|| {
        let pool = pool(1);
        let take = || pool.acquire(8).expect("room");
        let (first, second, third) = (take(), take(), take());
        // Two spares, which are used again.
        drop((first, second));
        let other = beside(&pool, |pool| {
            let shared = pool.shared();
            let mut chain = Chain::new();
            let right = lock(&shared.idle_since);
            shared.take_from_threads(false, &mut chain);
            drop(right);
            // SAFETY: nothing is out of what was taken, and it is ours.
            unsafe { Shared::free_all(chain, true) };
        });
        let (again, behind) = (take(), take());
        scribble(&again);
        drop(again);
        // The other goes on, if it was amid its look.
        thread::yield_now();
        drop((third, behind));
        local::end_of_thread();
        other.join().unwrap();
    });
}

/// One thread makes the places for pieces while another looks at them, or makes them too.
#[test]
fn loom_places_that_are_made() {
    briefly(2, || {
        let pool = pool(1);
        let other = beside(&pool, |pool| {
            once(&pool);
            local::end_of_thread();
        });
        pool.trim_idle(Duration::ZERO);
        assert!(pool.shared().depot.large.count() <= 1);
        other.join().unwrap();
        pool.trim_idle(Duration::ZERO);
        pool.trim_idle(Duration::ZERO);
        assert_eq!(pool.stats().reserved_bytes, 0);
    });
}
