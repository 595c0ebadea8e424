//! Several buffers of one budget in one request: all or none, and none while it waits.

use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use bufshard::ShardPool;
use bufshard::bufcore::AcquireError;
use testkit::tasks::{block_on, counting, poll};

const BUDGET: usize = 120_000;
/// Nobody waits so long unless a wake-up is lost.
const LONG: Duration = Duration::from_secs(30);

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

/// Sizes of all kinds, of which a pool of 1 MiB keeps some, in order.
#[test]
fn buffers_are_in_the_order_of_their_sizes() {
    let pool = ShardPool::builder().max_bytes(1 << 20).largest_pooled(100_000).build().expect("right");
    let sizes = [0, 70_000, 1, 0, 200_000, 1, 70_000];
    for _ in 0..3 {
        let mut bufs = pool.acquire_each(&sizes).expect("room");
        assert_eq!(bufs.len(), sizes.len());
        for (mark, (buf, &size)) in (0..).zip(bufs.iter_mut().zip(&sizes)) {
            assert!(buf.is_empty() && buf.capacity() == size);
            buf.resize(size, mark).expect("room");
        }
        for (mark, (buf, &size)) in (0..).zip(bufs.iter().zip(&sizes)) {
            assert!(buf.len() == size && buf.iter().all(|&byte| byte == mark), "{size} bytes overlap");
        }
    }
    assert!(pool.acquire_each(&[]).expect("nothing").is_empty());
}

/// What is refused is given back, to the byte, and is told with the numbers of the list.
#[test]
fn a_refusal_gives_back_what_it_took() {
    let pool = pool();
    let held = pool.acquire(30_000).expect("room");
    let before = pool.stats();
    for sizes in [&[20_000, 30_000, 30_000][..], &[1; 1300], &[64, 0, 80_000]] {
        let sum = sizes.iter().sum::<usize>();
        for _ in 0..20 {
            match pool.acquire_each(sizes).map(drop) {
                Err(AcquireError::Exhausted { requested, available }) => {
                    assert!(requested == sum && available < sum, "{available} of {sum}");
                }
                other => panic!("{other:?}, of {sum} bytes"),
            }
            let after = pool.stats();
            assert_eq!((after.in_use, after.in_use_bytes), (before.in_use, before.in_use_bytes));
            assert_eq!(after.reserved_bytes - after.idle_bytes, before.reserved_bytes - before.idle_bytes);
        }
    }
    drop(held);
    assert!(pool.acquire_each(&[20_000, 30_000, 30_000]).is_ok());
}

#[test]
fn what_can_never_be_served_is_too_large() {
    let pool = pool();
    let limit = pool.max_capacity();
    let refused = |sizes: &[usize]| {
        let error = pool.acquire_each(sizes).expect_err("over the budget");
        // No use to wait.
        assert_eq!(block_on(pool.acquire_each_async(sizes), LONG).expect("at once").map(drop), Err(error));
        match error {
            AcquireError::TooLarge { requested, limit } => (requested, limit),
            other => panic!("{other}"),
        }
    };
    assert_eq!(refused(&[1, limit + 1]), (limit + 1, limit));
    assert_eq!(refused(&[usize::MAX, usize::MAX]), (usize::MAX, limit));
    let (requested, most) = refused(&[60_000, 60_000]);
    assert!(requested == 120_000 && most < requested);
    // Of one byte each, with headers and the rest of their class.
    let (requested, most) = refused(&[1; 2000]);
    assert!(requested == 2000 && most < requested);
    assert_eq!(pool.acquire_each(&[limit]).expect("the largest")[0].capacity(), limit);
    let unbounded = ShardPool::new().expect("settings are right");
    let limit = unbounded.max_capacity();
    for sizes in [&[usize::MAX][..], &[limit; 3]] {
        let error = unbounded.acquire_each(sizes).map(drop).expect_err("no machine has it");
        assert!(matches!(error, AcquireError::TooLarge { .. } | AcquireError::OutOfMemory { .. }));
    }
}

/// While it waits, a part of it that there is room for is not held, and it is served as the first.
#[test]
fn who_waits_holds_no_part() {
    let pool = pool();
    let held = pool.acquire(60_000).expect("room");
    let taken = || pool.stats().reserved_bytes - pool.stats().idle_bytes;
    let before = taken();
    let sizes = [20_000, 60_000];
    let (wakes, waker) = counting();
    let mut both = pin!(pool.acquire_each_async(&sizes));
    for _ in 0..5 {
        assert!(poll(both.as_mut(), &waker).is_pending());
        assert_eq!(taken(), before, "it holds a part");
    }
    assert_eq!(wakes.count(), 0, "it wakes itself");
    assert!(pool.acquire(20_000).is_err(), "what there is, is for the first");
    drop(held);
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(Ok(bufs)) = poll(both.as_mut(), &waker) else { panic!("there is room") };
    assert_eq!([bufs[0].capacity(), bufs[1].capacity()], sizes);
    assert!(pool.acquire(10_000).is_ok(), "nobody waits any more");
}

/// Of three blocks two are to be had, and are given back, which does not wake the request: the blocks
/// of slabs that are free would be enough, if they were of one size.
#[test]
fn what_is_given_back_wakes_nobody_in_vain() {
    const SIZES: [usize; 2] = [3000, 60_000];
    let pool = ShardPool::builder().max_bytes(64 * 4096).build().expect("right");
    // Half of each slab is free, and few whole pages.
    let mut held: Vec<_> = std::iter::from_fn(|| pool.acquire(3000).ok()).collect();
    let mut index = 0;
    held.retain(|_| {
        index += 1;
        index % 2 == 0
    });
    pool.trim();
    let (wakes, waker) = counting();
    let mut both = pin!(pool.acquire_each_async(&SIZES));
    for _ in 0..3 {
        assert!(poll(both.as_mut(), &waker).is_pending(), "only half-used slabs are there");
    }
    assert_eq!(wakes.count(), 0, "it wakes itself");
    drop(held);
    assert!(wakes.count() > 0);
    assert!(poll(both.as_mut(), &waker).is_ready());
}

/// Threads that take a small and a large buffer, of a budget for two of them: by one request, all
/// are served.
#[test]
fn t24_a_small_and_a_large_buffer_in_one_request() {
    let pool = pool();
    let turns = testkit::trials::scaled(4000).max(200);
    thread::scope(|scope| {
        let each = [0, 1, 2, 3].map(|number| {
            let pool = &pool;
            scope.spawn(move || {
                let sizes = if number % 2 == 0 { [2000, 40_000] } else { [40_000, 2000] };
                for turn in 0..turns {
                    let bufs = block_on(pool.acquire_each_async(&sizes), LONG);
                    let bufs = bufs.unwrap_or_else(|| panic!("waits forever in turn {turn}"));
                    drop(bufs.expect("it waits until there is room"));
                }
            })
        });
        // The end of a scope does not wait for what threads give back as they end; joining does.
        each.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    assert_eq!(pool.stalled(), None);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0, "budget was lost");
}

/// A task that holds one and waits for another: the time of the first grows until it gives up.
#[test]
fn a_stalled_queue_is_seen() {
    let pool = pool();
    let _held = pool.acquire(60_000).expect("room");
    assert_eq!(pool.stalled(), None);
    let started = Instant::now();
    {
        let (_, waker) = counting();
        let mut other = pin!(pool.acquire_async(60_000));
        assert!(poll(other.as_mut(), &waker).is_pending());
        thread::sleep(Duration::from_millis(30));
        let mut later = pin!(pool.acquire_async(100));
        assert!(poll(later.as_mut(), &waker).is_pending());
        let stalled = pool.stalled().expect("two wait");
        assert!((Duration::from_millis(30)..=started.elapsed()).contains(&stalled), "{stalled:?}");
        // What waits has looked since, and was not served.
        assert!(poll(other.as_mut(), &waker).is_pending());
        assert!(pool.stalled().expect("two wait") >= stalled);
        let trimmed: &dyn bufshard::Trim = &pool;
        assert!(trimmed.stalled().is_some(), "a keeper sees it");
    }
    assert_eq!(pool.stalled(), None);
}

/// A request that looks while another has a part of what is free, and gives it back, is told.
#[test]
fn what_is_given_back_meanwhile_is_told() {
    let pool = ShardPool::builder().max_bytes(440_000).build().expect("settings are right");
    for round in 0..testkit::trials::scaled(30_000) {
        let [stays, goes] = [170_000, 200_000].map(|bytes| pool.acquire(bytes).expect("room"));
        thread::scope(|scope| {
            let one = scope.spawn(|| block_on(pool.acquire_async(150_000), LONG).is_some());
            while pool.stalled().is_none() {
                thread::yield_now();
            }
            let both = scope.spawn(|| block_on(pool.acquire_each_async(&[100_000, 200_000]), LONG).is_some());
            (0..round % 64 * 30).for_each(|_| std::hint::spin_loop());
            drop(goes);
            assert!(one.join().expect("no panic"), "a wake-up was lost in round {round}");
            drop(stays);
            assert!(both.join().expect("no panic"), "a wake-up was lost in round {round}");
        });
    }
}
