//! Models of buffers larger than a shard, and of trims that reach into the caches of other threads.
//! The head of `loom` says what stands for the bytes.

use alloc::vec::Vec;
use core::time::Duration;

use loom::thread;

use super::loom::{Buffer, ONE, SPAN, beside, briefly, freed, scribble, use_up};
use crate::BumpPool;
use crate::cache::local;
use crate::shard::Chain;
use crate::shared::Shared;

/// A pool that keeps `shards` shards.
fn pool(shards: usize) -> BumpPool {
    BumpPool::builder().shard_size(ONE).max_idle_bytes(shards * SPAN).build().expect("a small pool")
}

fn take(pool: &BumpPool) -> Buffer {
    pool.acquire(ONE).expect("the allocator has room")
}

/// Two threads use pages that go from one to the other: a buffer has its own alone, and all go.
#[test]
fn loom_large_buffers_go_round() {
    loom::model(|| {
        let pool = pool(4);
        let once = |pool: &BumpPool| {
            let mut buf = pool.acquire(2 * ONE).expect("the allocator has room");
            buf.extend_from_slice(&[7]).expect("room");
            assert_eq!(&buf[..], [7]);
        };
        let twice = move |pool: BumpPool| {
            once(&pool);
            once(&pool);
            local::end_of_thread();
        };
        let threads = [(), ()].map(|()| beside(&pool, twice));
        for thread in threads {
            thread.join().unwrap();
        }
        let stats = pool.stats();
        assert!(stats.in_use == 0 && stats.reserved_bytes <= 4 * SPAN, "{stats:?}");
        pool.trim();
        assert_eq!((freed(), pool.stats().reserved_bytes), (2, 0));
    });
}

/// Two threads release more than the budget has room for: what the pool says is idle is so much at
/// least, and both do not take the same off.
#[test]
fn loom_two_releases_over_the_budget() {
    loom::model(|| {
        let pool = pool(1);
        let bufs = [(), ()].map(|()| pool.acquire(2 * ONE).expect("the allocator has room"));
        let [first, second] = bufs;
        let other = thread::spawn(move || drop(second));
        drop(first);
        other.join().unwrap();
        let (stats, counted) = (pool.stats(), pool.shared().counted_idle());
        assert!((stats.idle_bytes..=4 * SPAN).contains(&counted), "{counted}: {stats:?}");
    });
}

/// The pool ends while a large buffer comes back to it, whose reference is the last or not.
#[test]
fn loom_end_of_a_pool_against_a_large_buffer() {
    loom::model(|| {
        let pool = pool(1);
        let buf = pool.acquire(ONE + 1).expect("the allocator has room");
        let consumer = thread::spawn(move || drop(buf));
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
                let bufs: Vec<_> = (0..2).map(|_| take(&pool)).collect();
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
        let (first, second) = (take(&pool), take(&pool));
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
        let third = take(&pool);
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
        let (first, second) = (take(&pool), take(&pool));
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
        let (first, second) = (take(&pool), take(&pool));
        let other = beside(&pool, |pool| pool.trim());
        // The other begins, so that it may be amid its look.
        thread::yield_now();
        drop(first);
        let (third, fourth) = (take(&pool), take(&pool));
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
        let (first, second, third) = (take(&pool), take(&pool), take(&pool));
        // Two spares, which are used again.
        drop((first, second));
        let other = beside(&pool, |pool| {
            let mut chain = Chain::new();
            pool.shared().take_all_idle(false, &mut chain);
            // SAFETY: nothing is out of what was taken, and it is ours.
            unsafe { Shared::free_all(chain) };
        });
        let (again, behind) = (take(&pool), take(&pool));
        scribble(&again);
        drop(again);
        // The other goes on, if it was amid its look.
        thread::yield_now();
        drop((third, behind));
        local::end_of_thread();
        other.join().unwrap();
    });
}

/// A thread keeps a larger buffer, takes it again and keeps it, beside trims.
fn kept_against(what: fn(&BumpPool)) {
    briefly(2, move || {
        let pool = pool(4);
        let once = |pool: &BumpPool| drop(pool.acquire(2 * ONE).expect("the allocator has room"));
        once(&pool);
        let other = beside(&pool, move |pool| what(&pool));
        once(&pool);
        other.join().unwrap();
        let stats = pool.stats();
        assert!(stats.in_use == 0 && stats.reserved_bytes <= 2 * (2 * SPAN), "{stats:?}");
        local::end_of_thread();
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
    });
}

#[test]
fn loom_trim_against_a_kept_buffer() {
    kept_against(BumpPool::trim);
}

#[test]
fn loom_looks_against_a_kept_buffer() {
    kept_against(|pool| (0..2).for_each(|_| pool.trim_idle(Duration::ZERO)));
}

/// A thread releases a larger buffer, and the last one of a listed shard, while another ends the
/// pool: what the end leaves to the thread goes.
#[test]
fn loom_end_of_a_pool_against_its_threads() {
    briefly(3, || {
        let pool = pool(4);
        let (large, first, second) =
            (pool.acquire(2 * ONE).expect("the allocator has room"), take(&pool), take(&pool));
        let end = thread::spawn(move || drop(pool));
        use_up(first);
        drop(large);
        use_up(second);
        end.join().unwrap();
        bufkit::orphan::sweep();
        assert_eq!(freed(), 3, "each freed once, while the thread goes on");
        local::end_of_thread();
    });
}
