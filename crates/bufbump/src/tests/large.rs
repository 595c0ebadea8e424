//! Models of pieces larger than a shard, and of trims that reach into the caches of other threads.
//! The head of `loom` says what stands for the bytes.

use alloc::vec::Vec;
use core::time::Duration;

use bufkit::orphan;
use buftest::models::{self, Shadow};
use loom::thread;

use super::loom::{
    Buffer, beside, briefly, end_of_a_pool_against_its_owner, freed, read_elsewhere, scribble, use_up,
};
use crate::BumpPool;
use crate::cache::local;

/// More than a shard.
const LARGE: usize = 16;

/// A pool with shards of 8 bytes that keeps `pieces` pieces; of one, no thread has any to itself.
fn pool(pieces: usize) -> BumpPool {
    BumpPool::builder().shard_size(8).max_idle_bytes(pieces * LARGE).build().expect("a small pool")
}

fn acquire(pool: &BumpPool) -> Buffer {
    pool.acquire(LARGE).expect("the allocator has room")
}

/// Uses a piece, on a thread that may have one to itself.
fn once(pool: &BumpPool) {
    let buf = acquire(pool);
    scribble(&buf);
    drop(buf);
}

/// What the releasing thread did with the bytes happens before what their next owner does: in a
/// piece that the thread has to itself, and in one that the pool keeps.
fn reuse_after_release_on_another_thread(pieces: usize) {
    loom::model(move || {
        let pool = pool(pieces);
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

#[test]
fn loom_own_piece_after_release_on_another_thread() {
    reuse_after_release_on_another_thread(2);
}

#[test]
fn loom_kept_piece_after_release_on_another_thread() {
    reuse_after_release_on_another_thread(1);
}

/// Two threads use the one piece that is kept, or none: nobody else has it meanwhile.
#[test]
fn loom_pieces_go_round() {
    briefly(2, || {
        let pool = pool(1);
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

/// The pool ends elsewhere while a thread releases the piece that it has to itself.
#[test]
fn loom_end_of_a_pool_against_its_piece() {
    loom::model(|| end_of_a_pool_against_its_owner(pool(2), LARGE));
}

/// A thread uses its piece again and again while another takes what it finds in the thread's cache.
fn owner_against(preemptions: usize, what: fn(&BumpPool)) {
    briefly(preemptions, move || {
        let pool = pool(2);
        let owner = beside(&pool, |pool| {
            once(&pool);
            once(&pool);
            local::end_of_thread();
        });
        what(&pool);
        owner.join().unwrap();
        orphan::sweep();
        assert_eq!(orphan::pending(), 0);
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
    });
}

#[test]
fn loom_trim_against_an_own_piece() {
    owner_against(2, BumpPool::trim);
}

#[test]
fn loom_clear_against_an_own_piece() {
    owner_against(2, BumpPool::clear);
}

#[test]
fn loom_looks_against_an_own_piece() {
    owner_against(1, |pool| (0..2).for_each(|_| pool.trim_idle(Duration::ZERO)));
}

/// The other begins after the owner's first use, so that the model needs fewer preemptions to get
/// to the end of what it does, between two uses.
#[test]
fn loom_own_piece_after_a_trim() {
    briefly(2, || {
        let pool = pool(2);
        once(&pool);
        let other = beside(&pool, |pool| pool.trim());
        once(&pool);
        local::end_of_thread();
        other.join().unwrap();
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
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
        let other = beside(&pool, |pool| pool.shared().free_listed());
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
        assert!(pool.bump_stats().kept <= 1);
        other.join().unwrap();
        pool.trim_idle(Duration::ZERO);
        pool.trim_idle(Duration::ZERO);
        assert_eq!(pool.stats().reserved_bytes, 0);
    });
}
