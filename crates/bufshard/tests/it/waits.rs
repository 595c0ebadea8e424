//! T24: futures that wait for budget, polled by hand: late, without a wake, never again, in any
//! order.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufshard::bufcore::{AcquireError, Buf};
use bufshard::{Acquire, ShardLease, ShardPool};
use testkit::tasks::{Counting, block_on, counting, lets_others_run, poll, poll_new, select};
use testkit::trials::moved::Waiting;

/// Three buffers of 32 KiB with what is around them.
const BUDGET: usize = 27 * 4096;
/// Nobody waits so long unless a wake-up is lost.
const LONG: Duration = Duration::from_secs(30);
/// A little more than the pool gives one that was woken.
const LATE: Duration = Duration::from_millis(1200);

type Served = Result<Buf<ShardLease>, AcquireError>;

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

#[test]
fn t38_requests_that_need_not_wait_let_others_run() {
    let pool = pool();
    let refused = BUDGET + 1;
    lets_others_run(async || drop(pool.acquire_async(1000).await.unwrap()));
    lets_others_run(async || assert!(pool.acquire_async(refused).await.is_err()));
}

#[test]
fn t38_a_task_that_selects_one_of_two_requests_lets_others_run() {
    let pool = pool();
    lets_others_run(async || drop(select(pool.acquire_async(100), pool.acquire_async(1000)).await.unwrap()));
}

#[test]
fn t38_requests_that_are_polled_once_get_memory() {
    let pool = pool();
    (0..1000).for_each(|_| drop(poll_new(|| pool.acquire_async(1000)).unwrap()));
}

/// A task: a future, and what its waker counts.
struct Task<'a> {
    future: Pin<Box<Acquire<'a>>>,
    wakes: Arc<Counting>,
    waker: Waker,
    seen: usize,
    is_done: bool,
}

impl<'a> Task<'a> {
    /// Polled once, which is in vain.
    fn waiting(pool: &'a ShardPool, bytes: usize) -> Self {
        let mut task = Self::new(pool, bytes);
        assert!(task.poll().is_none(), "there is no room");
        task
    }

    /// Not polled yet.
    fn new(pool: &'a ShardPool, bytes: usize) -> Self {
        let (wakes, waker) = counting();
        let future = Box::pin(pool.acquire_async(bytes));
        Self { future, wakes, waker, seen: 0, is_done: false }
    }

    fn poll(&mut self) -> Option<Served> {
        self.seen = self.wakes.count();
        match poll(self.future.as_mut(), &self.waker) {
            Poll::Ready(served) => {
                self.is_done = true;
                Some(served)
            }
            Poll::Pending => None,
        }
    }

    fn is_woken(&self) -> bool {
        !self.is_done && self.wakes.count() > self.seen
    }

    /// Polled if it was woken, as an executor does.
    fn run(&mut self) -> Option<Served> {
        if self.is_woken() { self.poll() } else { None }
    }

    fn forget(self) {
        mem::forget(self.future);
    }
}

/// Runs all that are woken until all are done, or nobody is woken any more; how many are left.
fn run_all(tasks: &mut Vec<Task<'_>>) -> usize {
    while let Some(at) = tasks.iter().position(Task::is_woken) {
        if let Some(served) = tasks[at].poll() {
            drop(served.expect("it waits until there is room"));
            drop(tasks.swap_remove(at));
        }
    }
    tasks.len()
}

/// The first is woken and its executor is busy; the third is polled without a wake, then the first:
/// somebody is served, and wakes the next.
#[test]
fn polled_without_a_wake() {
    for pause in [Duration::ZERO, LATE] {
        let pool = pool();
        let held = pool.acquire(90_000).expect("room");
        let mut tasks: Vec<_> = (0..3).map(|_| Task::waiting(&pool, 80_000)).collect();
        drop(held);
        assert!(tasks[0].is_woken());
        thread::sleep(pause);
        let served = [tasks[2].poll(), tasks[0].poll()];
        assert_eq!(served.iter().flatten().count(), 1, "there is room for one, and all sleep");
        drop(served);
        tasks.retain(|task| !task.is_done);
        assert_eq!(run_all(&mut tasks), 0, "a wake-up was lost");
    }
}

/// One that is woken and never polled, and does not go away either, keeps nobody else asleep.
#[test]
fn woken_and_not_polled() {
    for busy in 1..=3 {
        let pool = pool();
        let held = pool.acquire(90_000).expect("room");
        let _busy: Vec<_> = (0..busy).map(|_| Task::waiting(&pool, 80_000)).collect();
        let mut others: Vec<_> = (0..3).map(|_| Task::waiting(&pool, 80_000)).collect();
        drop(held);
        assert_eq!(run_all(&mut others), 0, "behind {busy} that are not polled");
    }
}

/// However many are forgotten: who comes behind them is woken when there is room, and later
/// requests do not even notice.
#[test]
fn forgotten() {
    for count in [1, 2, 10, 1000] {
        let pool = pool();
        let held = pool.acquire(90_000).expect("room");
        (0..count).for_each(|_| Task::waiting(&pool, 80_000).forget());
        let mut live = vec![Task::waiting(&pool, 80_000)];
        drop(held);
        assert_eq!(run_all(&mut live), 0, "behind {count} that were forgotten");
        thread::sleep(LATE);
        let buf = pool.acquire(80_000).expect("nobody waits any more");
        let address = buf.as_ptr();
        drop(buf);
        assert_eq!(
            pool.acquire(80_000).expect("room").as_ptr(),
            address,
            "releases free as if somebody waited"
        );
    }
}

/// One that is forgotten while there is no room for it does not keep those behind it from what
/// there is.
#[test]
fn forgotten_without_room() {
    let pool = pool();
    let _held = pool.acquire(30_000).expect("room");
    Task::waiting(&pool, 80_000).forget();
    assert!(pool.acquire(20_000).is_err(), "what there is, is for the first");
    thread::sleep(LATE);
    let mut small = Task::new(&pool, 20_000);
    let started = Instant::now();
    while small.poll().is_none() {
        assert!(started.elapsed() < LONG, "it holds all others up for ever");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A large request among tasks that take and give small buffers all the time, on other threads, is
/// served soon; so it is when it waits more than once.
#[test]
fn large_among_small() {
    let pool = pool();
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // ORDER: SeqCst, for ease.
                while !over.load(std::sync::atomic::Ordering::SeqCst) {
                    let buf = block_on(pool.acquire_async(30_000), LONG).expect("served in time");
                    drop(buf.expect("room"));
                }
            });
        }
        for _ in 0..5 {
            let started = Instant::now();
            let buf = block_on(pool.acquire_async(90_000), LONG);
            assert!(started.elapsed() < LONG / 4, "overtaken for {:?}", started.elapsed());
            drop(buf.expect("served in time").expect("room"));
        }
        // ORDER: SeqCst, for ease.
        over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// Nobody is woken in vain again and again: while a buffer is out, and while small ones come and go
/// that are not enough.
#[test]
fn wakes_are_few() {
    const ROUNDS: usize = 1000;
    let pool = pool();
    let held = pool.acquire(50_000).expect("room");
    let mut small = Some(pool.acquire(10_000).expect("room"));
    let mut tasks: Vec<_> = (0..10).map(|_| Task::waiting(&pool, 80_000)).collect();
    let mut polls = 0;
    for _ in 0..ROUNDS {
        drop(small.take());
        small = pool.acquire(10_000).ok();
        for task in &mut tasks {
            polls += usize::from(task.is_woken());
            assert!(task.run().is_none(), "there is no room");
        }
    }
    assert!(polls <= 20, "{polls} polls in vain");
    drop((held, small));
    assert_eq!(run_all(&mut tasks), 0);
}

/// Many that wait for the same: each release costs some wakes, not one for each that waits.
#[test]
fn wakes_do_not_grow_with_those_who_wait() {
    const TASKS: usize = 2000;
    let pool = pool();
    let held = pool.acquire(90_000).expect("room");
    let mut tasks: Vec<_> = (0..TASKS).map(|_| Task::waiting(&pool, 80_000)).collect();
    drop(held);
    let mut polls = 0;
    let mut done = 0;
    while done < TASKS {
        let mut held = None;
        for task in &mut tasks {
            polls += usize::from(task.is_woken());
            held = held.or(task.run());
        }
        assert!(held.is_some(), "a wake-up was lost when {done} were served");
        done += 1;
        tasks.retain(|task| !task.is_done);
        drop(held);
    }
    // In an emulator some are taken for late, and called once more.
    assert!(polls <= 32 * TASKS, "{polls} polls for {TASKS}");
}

/// One that is given up keeps nothing: neither memory nor a waker.
#[test]
fn t24_given_up() {
    let pool = pool();
    let held = pool.acquire(90_000).expect("room");
    let Task { future, wakes, waker, .. } = Task::waiting(&pool, 80_000);
    drop((future, waker));
    assert_eq!(Arc::strong_count(&wakes), 1, "its waker is kept");
    let before = wakes.count();
    drop(held);
    assert_eq!(wakes.count(), before, "nobody waits");
    assert!(pool.acquire(80_000).is_ok());
}

/// A request is woken at whatever moment of its beginning the release on another thread comes.
#[test]
fn t24_releases_at_any_moment() {
    let pool = pool();
    let (give, taken) = std::sync::mpsc::channel::<(Vec<Buf<ShardLease>>, usize)>();
    let releaser = thread::spawn(move || {
        for (bufs, spins) in taken {
            for buf in bufs {
                (0..spins).for_each(|_| std::hint::spin_loop());
                drop(buf);
            }
        }
    });
    for round in 0..testkit::trials::scaled(100_000) {
        let served = |bytes| block_on(pool.acquire_async(bytes), LONG).expect("a wake-up was lost");
        let bufs = (0..3).map(|_| served(30_000).expect("room")).collect();
        give.send((bufs, round % 64 * 8)).expect("it takes them");
        let buf = if round % 4 == 0 { pool.acquire_timeout(80_000, LONG) } else { served(80_000) };
        drop(buf.expect("it waits until there is room"));
    }
    drop(give);
    releaser.join().expect("a release does not panic");
}

/// All time-outs that there are.
#[test]
fn timeouts() {
    let pool = pool();
    let held = pool.acquire(90_000).expect("room");
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1)] {
        let started = Instant::now();
        assert!(matches!(pool.acquire_timeout(80_000, timeout), Err(AcquireError::Exhausted { .. })));
        assert!((timeout..LONG).contains(&started.elapsed()));
    }
    for bytes in [1_000_000, usize::MAX] {
        assert!(matches!(pool.acquire_timeout(bytes, LONG), Err(AcquireError::TooLarge { .. })));
    }
    thread::scope(|scope| {
        let waiter = scope.spawn(|| pool.acquire_timeout(80_000, Duration::MAX).map(drop));
        thread::sleep(Duration::from_millis(20));
        drop(held);
        assert_eq!(waiter.join().expect("waiting does not panic"), Ok(()));
    });
}

/// Random programs of futures, buffers, wakes and none: after each, when all that live are polled
/// as they are woken, all are served.
#[test]
fn programs() {
    let programs = testkit::trials::scaled(20_000).max(400) as u64;
    for seed in 0..programs {
        let mut rng = fastrand::Rng::with_seed(seed);
        let pool = pool();
        let mut held = Vec::new();
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for _ in 0..rng.usize(5..120) {
            match rng.u8(..8) {
                0 | 1 => held.extend(pool.acquire(rng.usize(1..95_000)).ok()),
                2 | 3 if tasks.len() < 12 => {
                    let mut task = Task::new(&pool, rng.usize(1..95_000));
                    match task.poll() {
                        Some(served) => held.push(served.expect("room")),
                        None => tasks.push(task),
                    }
                }
                4 if !held.is_empty() => drop(held.swap_remove(rng.usize(..held.len()))),
                5 if !tasks.is_empty() => {
                    let task = tasks.swap_remove(rng.usize(..tasks.len()));
                    if rng.bool() {
                        task.forget();
                    }
                }
                // Polled whether it was woken or not, with the old waker or a new one.
                _ if !tasks.is_empty() => {
                    let at = rng.usize(..tasks.len());
                    if rng.bool() {
                        (tasks[at].wakes, tasks[at].waker) = counting();
                    }
                    if let Some(served) = tasks[at].poll() {
                        held.push(served.expect("room"));
                        drop(tasks.swap_remove(at));
                    }
                }
                _ => {}
            }
        }
        // Some are never polled again.
        let mut idle = Vec::new();
        while tasks.len() > 1 && rng.u8(..3) == 0 {
            idle.push(tasks.swap_remove(rng.usize(..tasks.len())));
        }
        held.clear();
        let left = run_all(&mut tasks);
        assert_eq!(left, 0, "of seed {seed} sleep for ever, {} are idle", idle.len());
    }
}

/// A request goes from one executor to another.
#[test]
fn t24_moved() {
    testkit::trials::moved::t24_moved(|| {
        let pool = pool();
        let held = pool.acquire(90_000).expect("room");
        let future = Box::pin(async move {
            pool.acquire_async(80_000).await.expect("it waits until there is room");
        });
        Waiting { future, event: Box::new(move || drop(held)) }
    });
}
