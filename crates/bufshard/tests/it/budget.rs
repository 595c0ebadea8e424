//! The budget: a hard bound, and those who wait for it, blocking and as futures.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufshard::bufcore::{AcquireError, Buf, ConfigError};
use bufshard::{Builder, ShardLease, ShardPool};
use testkit::trials::refusing;
use testkit::{Kit, tasks};

/// Long enough for any machine; nobody waits for it unless a wake-up is lost.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);
const BUDGET: usize = 1 << 20;

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

fn built(builder: Builder) -> ShardPool {
    builder.build().expect("settings are right")
}

fn is_exhausted<T>(result: &Result<T, AcquireError>) -> bool {
    matches!(result, Err(AcquireError::Exhausted { .. }))
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        // ORDER: SeqCst, for ease.
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counting {
    fn count(&self) -> usize {
        // ORDER: SeqCst, for ease.
        self.0.load(SeqCst)
    }
}

fn counting() -> (Arc<Counting>, Waker) {
    let counting = Arc::new(Counting::default());
    (Arc::clone(&counting), Waker::from(counting))
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    tasks::block_on(future, LONG).expect("no wake-up is lost")
}

/// All of the budget can be had, in one piece and in many, and not a byte more; what is idle does
/// not count as gone.
#[test]
fn a_hard_bound() {
    let pool = pool();
    for bytes in [1, 100, 5000, 100_000, pool.max_capacity()] {
        let mut out = Vec::new();
        let error = loop {
            match pool.acquire(bytes) {
                Ok(buf) => out.push(buf),
                Err(error) => break error,
            }
            assert!(pool.stats().reserved_bytes <= BUDGET);
        };
        assert!(matches!(error, AcquireError::Exhausted { requested, .. } if requested == bytes), "{error}");
        let total: usize = out.iter().map(|buf| buf.capacity()).sum();
        assert!(total * 3 >= BUDGET || bytes < 100, "{total} bytes in buffers of {bytes}");
        assert!(!out.is_empty());
    }
    let limit = pool.max_capacity();
    let error = pool.acquire(limit + 1).expect_err("over the budget");
    assert_eq!(error, AcquireError::TooLarge { requested: limit + 1, limit });
    let error = pool.acquire_timeout(limit + 1, LONG).expect_err("no use to wait");
    assert_eq!(error, AcquireError::TooLarge { requested: limit + 1, limit });
}

/// So it is where a request more would start at a cache line, for which there is no room.
#[test]
fn a_hard_bound_of_any_size() {
    let least = 4096;
    for budget in (1..1000).chain([4095, 4096, 5000, 8192, 100_000]) {
        let built = ShardPool::builder().shards(1).max_bytes(budget).build();
        if budget < least {
            let refused = ConfigError::TooSmall { setting: "max_bytes", requested: budget, least };
            assert_eq!(built.map(drop), Err(refused), "nothing could ever be had");
            continue;
        }
        let pool = built.expect("settings are right");
        let limit = pool.max_capacity();
        let buf = pool.acquire(limit).expect("the largest request");
        assert!(buf.capacity() >= limit && pool.stats().reserved_bytes <= budget);
        drop(buf);
        let error = pool.acquire(limit + 1).expect_err("over the budget");
        assert_eq!(error, AcquireError::TooLarge { requested: limit + 1, limit });
    }
}

/// What is idle in the cache of a thread that does nothing makes room.
#[test]
fn idle_caches_make_room() {
    let pool = pool();
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        drop([(); 4].map(|()| theirs.acquire(200_000).expect("room")));
        to_here.send(()).expect("the other side waits");
        wait.recv().expect("the other side sends");
        drop(theirs.acquire(1));
    });
    from_there.recv().expect("the other side sends");
    assert!(pool.stats().reserved_bytes > 800_000, "idle there");
    assert!(pool.acquire(900_000).is_ok());
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
}

#[test]
fn a_timeout_ends() {
    let pool = pool();
    let held = pool.acquire(900_000).expect("room");
    let started = Instant::now();
    assert!(is_exhausted(&pool.acquire_timeout(500_000, SHORT)));
    assert!(started.elapsed() >= SHORT);
    assert!(pool.acquire_timeout(1000, SHORT).is_ok(), "there is room for that");
    drop(held);
    assert!(pool.acquire_timeout(500_000, Duration::ZERO).is_ok());
}

/// The release of one thread serves another that waits.
#[test]
fn a_release_wakes() {
    for bytes in [1000, 500_000] {
        let pool = pool();
        let mut held: Vec<_> = std::iter::from_fn(|| pool.acquire(bytes).ok()).collect();
        let barrier = Arc::new(Barrier::new(2));
        let (theirs, there) = (pool.clone(), Arc::clone(&barrier));
        let waiter = thread::spawn(move || {
            there.wait();
            theirs.acquire_timeout(bytes, LONG).map(|buf| buf.capacity())
        });
        barrier.wait();
        thread::sleep(SHORT);
        let released = Instant::now();
        drop(held.pop());
        assert!(waiter.join().expect("waiting does not panic").is_ok());
        // It looks once more when its time is over: that is not what served it.
        assert!(released.elapsed() < LONG / 2, "a wake-up was lost");
    }
}

/// Small requests do not starve a large one: from when it waits until it is served, they get
/// nothing that it needs.
#[test]
fn a_large_request_is_not_starved() {
    let pool = pool();
    let mut small: Vec<_> = std::iter::from_fn(|| pool.acquire(10_000).ok()).collect();
    let (_, waker) = counting();
    let mut large = pin!(pool.acquire_async(900_000));
    assert!(poll(large.as_mut(), &waker).is_pending());
    for round in 0.. {
        drop(small.pop().expect("it was served before all were back"));
        assert!(is_exhausted(&pool.acquire(10_000)), "overtaken in round {round}");
        if let Poll::Ready(buf) = poll(large.as_mut(), &waker) {
            assert!(buf.expect("room").capacity() >= 900_000);
            break;
        }
    }
    assert!(small.len() > 5, "it waited for more than it needed");
    assert!(pool.acquire(10_000).is_ok(), "nobody waits any more");
}

/// First come, first served, whatever the sizes: who looks when he is woken, is not overtaken.
#[test]
fn in_order() {
    let pool = pool();
    let mut held = Some(pool.acquire(900_000).expect("room"));
    let (woken, wakers): (Vec<_>, Vec<_>) = (0..3).map(|_| counting()).unzip();
    let mut waiting: Vec<Pin<Box<_>>> =
        [700_000, 1000, 600_000].map(|bytes| Box::pin(pool.acquire_async(bytes))).into();
    // The last is polled before the second, and so comes before it.
    assert!(poll(waiting[0].as_mut(), &wakers[0]).is_pending());
    assert!(poll(waiting[2].as_mut(), &wakers[2]).is_pending());
    drop(held.take());
    assert_eq!(woken[0].count(), 1, "the first is woken");
    let Poll::Ready(Ok(first)) = poll(waiting[0].as_mut(), &wakers[0]) else { panic!("not served") };
    assert!(poll(waiting[2].as_mut(), &wakers[2]).is_pending(), "there is no room for it");
    assert!(poll(waiting[1].as_mut(), &wakers[1]).is_pending(), "it is not its turn, though there is room");
    let before = [woken[2].count(), woken[1].count()];
    drop(first);
    let woken = [woken[2].count() - before[0], woken[1].count() - before[1]];
    assert_eq!(woken, [1, 1], "those who could be served are woken");
    let Poll::Ready(Ok(third)) = poll(waiting[2].as_mut(), &wakers[2]) else { panic!("not served") };
    assert!(matches!(poll(waiting[1].as_mut(), &wakers[1]), Poll::Ready(Ok(_))));
    assert_eq!(third.capacity(), 600_000);
}

/// A future that is dropped, before it was woken and after, holds nobody up and loses nothing.
#[test]
fn cancelled() {
    let pool = pool();
    for woken_before in [false, true] {
        let mut held = Some(pool.acquire(900_000).expect("room"));
        let ((_, first), (next, second)) = (counting(), counting());
        let mut waiting = Some(Box::pin(pool.acquire_async(900_000)));
        let mut behind = pin!(pool.acquire_async(500_000));
        assert!(poll(waiting.as_mut().expect("there").as_mut(), &first).is_pending());
        assert!(poll(behind.as_mut(), &second).is_pending());
        if woken_before {
            drop(held.take());
        }
        drop(waiting.take());
        assert_eq!(next.count(), 1, "it is the first, and may find what is idle");
        if !woken_before {
            assert!(poll(behind.as_mut(), &second).is_pending());
        }
        drop(held);
        assert_eq!(next.count(), 1 + usize::from(!woken_before), "woken when there is room, once");
        let served = poll(behind.as_mut(), &second);
        assert!(matches!(served, Poll::Ready(Ok(_))), "{woken_before}");
    }
    // One that keeps another from what there would be for it, and goes.
    {
        let _held = pool.acquire(500_000).expect("room");
        let ((_, first), (next, second)) = (counting(), counting());
        let mut waiting = Box::pin(pool.acquire_async(900_000));
        let mut behind = pin!(pool.acquire_async(400_000));
        assert!(poll(waiting.as_mut(), &first).is_pending());
        assert!(poll(behind.as_mut(), &second).is_pending());
        drop(waiting);
        assert_eq!(next.count(), 1, "the next is woken");
        assert!(matches!(poll(behind.as_mut(), &second), Poll::Ready(Ok(_))));
    }
    // A future that was never polled, and one behind.
    drop(pool.acquire_async(1));
    let _held = pool.acquire(900_000).expect("room");
    let (count, waker) = counting();
    {
        let mut first = pin!(pool.acquire_async(900_000));
        assert!(poll(first.as_mut(), &waker).is_pending());
        let mut second = Box::pin(pool.acquire_async(900_000));
        assert!(poll(second.as_mut(), &waker).is_pending());
        drop(second);
        assert_eq!(count.count(), 0, "the first still waits");
    }
    assert_eq!(pool.acquire(100).map(|buf| buf.capacity()), Ok(100), "nobody waits any more");
}

/// A future that is forgotten while it is the first holds up those behind it, and plain requests,
/// for about a second.
#[test]
fn forgotten() {
    let pool = pool();
    let held = pool.acquire(900_000).expect("room");
    let mut lost = Box::pin(pool.acquire_async(900_000));
    let (woken, waker) = counting();
    assert!(poll(lost.as_mut(), &waker).is_pending());
    std::mem::forget(lost);
    let small = pool.acquire(10_000);
    assert!(is_exhausted(&small), "what there is, is for the first");
    drop(held);
    assert_eq!(woken.count(), 1);
    let started = Instant::now();
    while is_exhausted(&pool.acquire(10_000)) {
        assert!(started.elapsed() < LONG, "it holds all others up for ever");
        thread::sleep(SHORT);
    }
    assert!(started.elapsed() > Duration::from_millis(500), "it was given no time");
    let held = pool.acquire(900_000).expect("room");
    let theirs = pool.clone();
    let waiter = thread::spawn(move || theirs.acquire_timeout(900_000, LONG).map(|buf| buf.capacity()));
    thread::sleep(SHORT);
    let released = Instant::now();
    drop(held);
    assert_eq!(waiter.join().expect("waiting does not panic"), Ok(900_000));
    assert!(released.elapsed() < LONG / 2, "a wake-up was lost");
}

/// Futures that are polled with another waker wake the last one.
#[test]
fn the_last_waker_counts() {
    let pool = pool();
    let held = pool.acquire(900_000).expect("room");
    let ((old, first), (new, second)) = (counting(), counting());
    let mut waiting = pin!(pool.acquire_async(900_000));
    assert!(poll(waiting.as_mut(), &first).is_pending());
    assert!(poll(waiting.as_mut(), &second).is_pending());
    drop(held);
    assert_eq!((old.count(), new.count()), (0, 1));
}

/// Eight threads over a budget for three of their buffers, waiting in both ways; each is served in
/// the end, and the bound holds.
#[test]
fn many_wait() {
    let pool =
        ShardPool::builder().max_bytes(3 * 70_000).thread_cache(2).build().expect("settings are right");
    let served = Arc::new(AtomicUsize::new(0));
    let rounds = testkit::trials::scaled(20_000).max(50);
    let threads: Vec<_> = (0..8_u64)
        .map(|index| {
            let (pool, served) = (pool.clone(), Arc::clone(&served));
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(index);
                for round in 0..rounds {
                    let bytes = rng.usize(1..64_000);
                    let buf: Result<Buf<ShardLease>, _> = if (round + index as usize).is_multiple_of(2) {
                        pool.acquire_timeout(bytes, LONG)
                    } else {
                        block_on(pool.acquire_async(bytes))
                    };
                    let mut buf = buf.expect("a buffer comes back in time");
                    assert!(pool.stats().reserved_bytes <= 3 * 70_000);
                    buf.resize(bytes, index as u8).expect("asked for");
                    if round % 3 == 0 {
                        thread::yield_now();
                    }
                    assert!(buf.iter().all(|&byte| byte == index as u8));
                    // ORDER: SeqCst, for ease.
                    served.fetch_add(1, SeqCst);
                    if rng.u8(..) < 20 {
                        let mut request = Box::pin(pool.acquire_async(60_000));
                        let (_, waker) = counting();
                        drop(poll(request.as_mut(), &waker));
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("all are served"));
    // ORDER: SeqCst, for ease.
    assert_eq!(served.load(SeqCst), 8 * rounds);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// T27: a pool with a budget that refuses says what the next request gets, to the byte: headers,
/// alignments and size classes included. (Where memory goes back as wholes it may say less.)
#[test]
fn t27_refusals() {
    let makes: [fn() -> ShardPool; 9] = [
        || built(ShardPool::builder().max_bytes(9000)),
        || built(ShardPool::builder().max_bytes(60_000)),
        || built(ShardPool::builder().max_bytes(20_000).largest_pooled(2000)),
        || built(ShardPool::builder().max_bytes(20_000).smallest_pooled(500).alignment(256)),
        || built(ShardPool::builder().max_bytes(5000).thread_cache(0).shards(1).shard_buffers(1)),
        || built(ShardPool::builder().max_bytes(700_000)),
        || built(ShardPool::builder().max_bytes(20_000).smallest_pooled(80).largest_pooled(1000)),
        || built(ShardPool::builder().max_bytes(60_000).alignment(4096)),
        || built(ShardPool::builder().max_bytes(600_000).alignment(4096).largest_pooled(5000)),
    ];
    for make in makes {
        let kit = Kit { make, is_fallback: |_| false, rejects: true, share: 2, trim: testkit::trials::trim };
        refusing::t27_refusals(&kit);
    }
}

/// Each request that is refused as exhausted is counted once, whether it could have waited or not.
#[test]
#[cfg(feature = "stats")]
fn refusals_are_counted() {
    let pool = built(ShardPool::builder().max_bytes(100_000));
    let held = pool.acquire(90_000).unwrap();
    assert!(is_exhausted(&pool.acquire(80_000)));
    assert!(is_exhausted(&pool.acquire_zeroed(80_000)));
    assert!(is_exhausted(&pool.acquire_each(&[1000, 80_000])));
    assert!(is_exhausted(&pool.acquire_timeout(80_000, SHORT)));
    assert_eq!(pool.stats().exhausted, 4);
    let other = std::thread::spawn({
        let pool = pool.clone();
        move || pool.acquire_timeout(80_000, LONG).map(drop)
    });
    std::thread::sleep(SHORT);
    drop(held);
    assert_eq!(other.join().unwrap(), Ok(()));
    assert_eq!(pool.stats().exhausted, 4, "the one that waited was served");
}
