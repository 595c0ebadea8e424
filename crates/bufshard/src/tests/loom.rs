//! Models of claims, of blocks on their way, of the end of a pool, and of who waits, for every
//! interleaving that loom finds.
//!
//! loom sees its own atomics and cells only, not the raw bytes of a block or the slots of a cache.
//! So a `Shadow` cell stands for them. The one in each cache is written by whoever uses its
//! magazines, and one of the test's own where a user of the buffer would write. A missing order
//! shows as a race on it.
//!
//! The pools have one class, a thread keeps one block of it, and there is one shard with room for
//! one.
//!
//! With the known defects `relaxed`, `nofence`, `nowake`, `onewake` and `overtakes` some of these
//! models fail, which is noted at each. The light fence is a full one here, and
//! orders more than it does elsewhere. That the orders without it are enough is for ThreadSanitizer
//! to see (`tests/races.rs`), to which this fence is nothing. A thread that has no cache executes
//! none.
//!
//! An exchange comes right behind what it replaces; loom does not know that, and lets who claims a
//! cache again read what the first claim left in `intent`, although its thread has announced more.
//! So where a model has two claims in a row beside the thread, it reports what cannot be. A trim
//! claims each cache once.

use alloc::sync::Arc as StdArc;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;

use bufcore::Buf;
use bufkit::thread_cache;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use testkit::models::{self, Shadow, Signal, finish};

use crate::class::LEAST_BYTES;
use crate::{ShardLease, ShardPool};

type Buffer = Buf<ShardLease>;

const BYTES: usize = 8;

fn built(thread_cache: usize, budget: usize) -> ShardPool {
    let builder =
        ShardPool::builder().thread_cache(thread_cache).shards(1).shard_buffers(1).max_bytes(budget);
    builder.build().expect("a small pool")
}

fn pool() -> ShardPool {
    built(1, usize::MAX)
}

fn acquire(pool: &ShardPool) -> Buffer {
    pool.acquire(BYTES).expect("the allocator has room")
}

/// Acquires, and writes if the memory is the one that was at `address`.
fn acquire_again(pool: &ShardPool, address: *const u8, shadow: &Shadow) -> Buffer {
    models::acquire_again(pool, BYTES, address, shadow)
}

/// Does `work` on another thread with a handle of the pool, which goes after the thread's cache.
fn beside(pool: &ShardPool, work: impl FnOnce(&ShardPool) + Send + 'static) -> JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || {
        work(&pool);
        thread_cache::end_of_thread();
    })
}

/// Trims a pool of which nothing is out, and fails when a block was lost.
fn all_goes(pool: &ShardPool) {
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A pool whose budget is for one buffer, which is out.
fn with_one_out() -> (ShardPool, Buffer) {
    let one = crate::block::Block::most_total(64, 16);
    let pool = built(0, one + one / 2);
    let held = acquire(&pool);
    (pool, held)
}

/// A block goes through the shard from the thread that releases it to the one that acquires: what
/// the one did with the bytes happens before what the other does. Fails with `relaxed`.
#[test]
fn loom_bins_carry_what_was_done() {
    loom::model(|| {
        let pool = built(0, usize::MAX);
        let shadow = Shadow::shared();
        let buf = acquire(&pool);
        let address = buf.as_ptr();
        shadow.write();
        let consumer = {
            let shadow = Arc::clone(&shadow);
            thread::spawn(move || {
                shadow.write();
                drop(buf);
            })
        };
        thread::yield_now();
        drop(acquire_again(&pool, address, &shadow));
        consumer.join().unwrap();
    });
}

/// Two threads take and put at the same bin: none gets what the other has, and what is in the bin
/// is found in the end.
#[test]
fn loom_bins_go_round() {
    loom::model(|| {
        let pool = built(0, usize::MAX);
        drop(acquire(&pool));
        let other = beside(&pool, |pool| drop(acquire(pool)));
        drop(acquire(&pool));
        other.join().unwrap();
        all_goes(&pool);
    });
}

/// The bins that are missing are made while a thread releases into them: it sees them complete, and
/// no block is lost.
#[test]
fn loom_bins_that_are_missing() {
    loom::model(|| {
        let builder = ShardPool::builder().thread_cache(0).shards(2).shard_buffers(1);
        let pool = builder.build().expect("settings are right");
        let [first, second, third] = [(); 3].map(|()| acquire(&pool));
        // The second is turned away.
        drop((first, second));
        let other = thread::spawn(move || drop(third));
        // One of them makes the rest.
        let both = (acquire(&pool), acquire(&pool));
        other.join().unwrap();
        drop(both);
        all_goes(&pool);
    });
}

/// A thread pops and pushes in its cache while another empties it: never both at once, and no block
/// is lost or had twice. Fails with `nofence`, and with `relaxed`.
#[test]
fn loom_trim_against_the_owner() {
    loom::model(|| {
        let pool = pool();
        let owner = beside(&pool, |pool| {
            drop(acquire(pool));
            drop(acquire(pool));
        });
        thread::yield_now();
        pool.trim();
        owner.join().unwrap();
        all_goes(&pool);
    });
}

/// Two trims, one after the other, and the owner in the slow path of a release between them. Fails
/// with `nofence` and `relaxed`.
#[test]
fn loom_trims_against_a_slow_release() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        let (first, second) = (acquire(&pool), acquire(&pool));
        let owner = {
            thread::spawn(move || {
                drop(first);
                drop(second);
                thread_cache::end_of_thread();
            })
        };
        pool.trim();
        pool.trim();
        owner.join().unwrap();
        all_goes(&pool);
    });
}

/// A thread takes a block of its magazine and gives it back, so that it goes where it was, and once
/// more, so that it is put apart; meanwhile another empties the cache. A claim sees what the thread
/// did, and the thread that there was a claim.
#[test]
fn loom_trim_against_the_block_taken_last() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        drop((acquire(&pool), acquire(&pool)));
        let apart = acquire(&pool);
        let trimmer = beside(&pool, ShardPool::trim);
        drop(acquire(&pool));
        drop(acquire(&pool));
        trimmer.join().unwrap();
        drop(apart);
        all_goes(&pool);
    });
}

/// Two trims at once, and the owner at work.
#[test]
fn loom_trims_against_each_other() {
    loom::model(|| {
        let pool = pool();
        drop(acquire(&pool));
        let trimmer = beside(&pool, ShardPool::trim);
        let buf = acquire(&pool);
        drop(buf);
        pool.trim();
        trimmer.join().unwrap();
        all_goes(&pool);
    });
}

/// The thread's magazine is given slots of its cache, and then an array; meanwhile a look of
/// another thread may find it unused, so that it loses them. What the thread knows of its slots it
/// knows while it has the cache. Fails with `peeks`.
#[test]
fn loom_slots_against_looks() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        // One apart, one in a slot of the cache's, and one too many.
        drop((acquire(&pool), acquire(&pool), acquire(&pool)));
        pool.trim_idle(Duration::ZERO);
        let keeper = beside(&pool, |pool| pool.trim_idle(Duration::ZERO));
        let held = (acquire(&pool), acquire(&pool), acquire(&pool));
        keeper.join().unwrap();
        drop(held);
        all_goes(&pool);
    });
}

/// The same while the thread only releases, and is given slots for that.
#[test]
fn loom_looks_against_releases() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        let held = (acquire(&pool), acquire(&pool), acquire(&pool));
        pool.trim_idle(Duration::ZERO);
        let keeper = beside(&pool, |pool| pool.trim_idle(Duration::ZERO));
        drop(held);
        keeper.join().unwrap();
        all_goes(&pool);
    });
}

/// What is idle is counted while its thread works: there never is more than there are blocks, and
/// one that is counted in two places. Fails with `twice`.
#[test]
fn loom_counts_of_what_is_idle() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        let held = (acquire(&pool), acquire(&pool), acquire(&pool));
        let counter = beside(&pool, |pool| {
            let idle = pool.shared().idle_bytes() / LEAST_BYTES;
            assert!(idle <= 3 + 1, "{idle} are counted");
        });
        drop(held);
        drop((acquire(&pool), acquire(&pool)));
        counter.join().unwrap();
    });
}

/// A thread ends, and leaves its cache to the next, while another empties it.
#[test]
fn loom_trim_against_the_end_of_a_thread() {
    loom::model(|| {
        let pool = pool();
        let ending = beside(&pool, |pool| drop(acquire(pool)));
        thread::yield_now();
        pool.trim();
        drop(acquire(&pool));
        ending.join().unwrap();
        all_goes(&pool);
    });
}

/// The pool ends here while its buffer is released on the thread that has a cache: all is freed,
/// once, and loom sees what is leaked. Fails with `nofence`, `overtakes` and `relaxed`.
#[test]
fn loom_end_of_a_pool_against_a_late_release() {
    loom::model(|| {
        let pool = pool();
        let owner = {
            let pool = pool.clone();
            thread::spawn(move || {
                let buf = acquire(&pool);
                drop(pool);
                drop(buf);
                thread_cache::end_of_thread();
            })
        };
        thread::yield_now();
        drop(pool);
        owner.join().unwrap();
    });
}

/// The same, with the release on a thread that has no cache, into a bin that is being closed and
/// has something in it.
#[test]
fn loom_end_of_a_pool_against_a_release_elsewhere() {
    loom::model(|| {
        let pool = built(0, usize::MAX);
        let (first, buf) = (acquire(&pool), acquire(&pool));
        // In the bin, which whoever closes it or has it locked at that moment has to empty.
        drop(first);
        let other = thread::spawn(move || {
            drop(buf);
            thread_cache::end_of_thread();
        });
        thread::yield_now();
        drop(pool);
        other.join().unwrap();
    });
}

/// The pool ends elsewhere while the thread that used it does nothing, and then meets what it has
/// of it, or ends: the cache is freed, once. loom sees what is leaked.
#[test]
fn loom_end_of_a_pool_against_an_idle_thread() {
    loom::model(|| {
        let pool = pool();
        drop(acquire(&pool));
        let other = thread::spawn(move || {
            drop(pool);
            thread_cache::end_of_thread();
        });
        // Let go of where it is met by chance, and else at the end.
        let _ = thread_cache::find(usize::MAX);
        thread_cache::end_of_thread();
        other.join().unwrap();
    });
}

/// The same with a slow release at that moment, whose last block goes into the cache: nothing of
/// the cache is used when the end has taken it over. Fails with `overtakes`.
#[test]
fn loom_end_of_a_pool_against_a_slow_release() {
    loom::model(|| {
        let pool = built(2, usize::MAX);
        let (first, second) = (acquire(&pool), acquire(&pool));
        drop(first);
        let other = thread::spawn(move || {
            drop(pool);
            thread_cache::end_of_thread();
        });
        drop(second);
        thread_cache::end_of_thread();
        other.join().unwrap();
    });
}

/// A future waits for the budget that two buffers take, which are released on another thread: it is
/// served, or it was woken and is then. `thread_cache` decides where they go: into a cache, or one
/// into the shard. Fails with `nowake`.
fn waits(thread_cache: usize) {
    loom::model(move || {
        let pool = built(thread_cache, 2 * crate::block::Block::most_total(64, 16));
        let (first, second) = (acquire(&pool), acquire(&pool));
        let over = Signal::new();
        let other = {
            let over = StdArc::clone(&over);
            thread::spawn(move || {
                drop(first);
                drop(second);
                // No more releases of this thread: what it left in its cache is to be found.
                over.take();
                thread_cache::end_of_thread();
            })
        };
        let served = finish(pin!(pool.acquire_async(100)), &Signal::new());
        assert!(served.is_ok());
        over.give();
        other.join().unwrap();
    });
}

#[test]
fn loom_waiter_against_releases_into_a_cache() {
    waits(2);
}

#[test]
fn loom_waiter_against_releases_into_a_shard() {
    waits(0);
}

/// Who waits looks at a cache from outside, once it has its flag. Where nothing is seen, nothing is
/// put in later. Fails with `unfenced-look` and `hasty-look`.
#[test]
fn loom_looks_from_outside_against_a_release() {
    loom::model(|| {
        let pool = built(1, 1 << 20);
        let held = acquire(&pool);
        pool.shared().wait_queue.note(1);
        let looker = {
            let pool = pool.clone();
            thread::spawn(move || {
                let cache = pool.shared().caches().next().expect("that of the other thread");
                cache.set_waited(true);
                pool.shared().is_empty_for_all(cache, &mut None)
            })
        };
        drop(held);
        let was_empty = looker.join().unwrap();
        let is_empty = pool.shared().caches().all(|cache| cache.is_empty());
        assert!(is_empty || !was_empty, "the block is not seen");
    });
}

/// Two wait, and the first gives up at the moment of the release: the second is served.
#[test]
fn loom_waiter_that_gives_up() {
    loom::model(|| {
        let (pool, held) = with_one_out();
        let signal = Signal::new();
        let waker = Waker::from(StdArc::clone(&signal));
        let mut first = alloc::boxed::Box::pin(pool.acquire_async(BYTES));
        let mut second = pin!(pool.acquire_async(BYTES));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let other = thread::spawn(move || {
            drop(held);
            thread_cache::end_of_thread();
        });
        drop(first);
        assert!(finish(second.as_mut(), &signal).is_ok());
        other.join().unwrap();
    });
}

/// Two wait, and the first is woken and never looks: the second is served all the same, whether it
/// was there before the release or comes after it. Fails with `onewake`.
#[test]
fn loom_waiter_behind_one_that_never_looks() {
    loom::model(|| {
        let (pool, held) = with_one_out();
        let signal = Signal::new();
        let mut first = alloc::boxed::Box::pin(pool.acquire_async(BYTES));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let other = thread::spawn(move || {
            drop(held);
            thread_cache::end_of_thread();
        });
        assert!(finish(pin!(pool.acquire_async(BYTES)), &signal).is_ok());
        other.join().unwrap();
    });
}

/// Two wait on two threads for the one buffer that there is room for: whoever is first, the other
/// is woken when it is released. Fails with `nowake`.
#[test]
fn loom_waiters_one_after_the_other() {
    let mut model = loom::model::Builder::new();
    // Each may look many times.
    model.max_branches = 2000;
    model.check(|| {
        let (pool, held) = with_one_out();
        let other = beside(&pool, |pool| {
            drop(finish(pin!(pool.acquire_async(BYTES)), &Signal::new()).expect("room"));
        });
        drop(held);
        drop(finish(pin!(pool.acquire_async(BYTES)), &Signal::new()).expect("room"));
        other.join().unwrap();
    });
}
