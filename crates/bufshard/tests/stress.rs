//! Sharded pools under load: handles of one pool on threads that come and
//! go, trims in between. Requests wait for budget, as threads and as futures that are
//! polled late, without a wake, no more, or never again. There are phases with a keeper beside
//! them.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use bufshard::bufcore::{AcquireError, Buf};
use bufshard::{Acquire, ShardLease, ShardPool};
use fastrand::Rng;
use testkit::stress::keeper::Kept;
use testkit::stress::pools::{Moment, Subject, all_goes, round};
use testkit::stress::{Round, patience, run};
use testkit::tasks::{Counting, block_on, counting, poll};

const BUDGET: usize = 512 << 10;
/// The most that a request that waits asks for: several fit, and none is for nobody.
const LARGEST: usize = BUDGET / 3;

/// A future that waits, and what its waker counts.
struct Task<'a> {
    future: Pin<Box<Acquire<'a>>>,
    wakes: Arc<Counting>,
    waker: Waker,
    seen: usize,
}

impl<'a> Task<'a> {
    fn new(pool: &'a ShardPool, bytes: usize) -> Self {
        let (wakes, waker) = counting();
        Self { future: Box::pin(pool.acquire_async(bytes)), wakes, waker, seen: 0 }
    }

    fn is_woken(&self) -> bool {
        self.wakes.count() > self.seen
    }

    /// Whether it was served.
    fn poll(&mut self) -> bool {
        self.seen = self.wakes.count();
        match poll(self.future.as_mut(), &self.waker) {
            Poll::Ready(served) => {
                drop(served.expect("it waits until there is room"));
                true
            }
            Poll::Pending => false,
        }
    }
}

/// Some futures at once: polled as they are woken, or without it, with another waker, dropped,
/// forgotten.
fn futures(pool: &ShardPool, rng: &mut Rng) {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for _ in 0..rng.usize(4..40) {
        let at = rng.usize(..tasks.len().max(1));
        match rng.u8(..16) {
            0..5 if tasks.len() < 6 => tasks.push(Task::new(pool, rng.usize(1..LARGEST))),
            5 => thread::yield_now(),
            _ if tasks.is_empty() => {}
            6 => drop(tasks.swap_remove(at)),
            7 if rng.u8(..64) == 0 => mem::forget(tasks.swap_remove(at).future),
            8 => (tasks[at].wakes, tasks[at].waker) = counting(),
            9..11 => {
                if tasks[at].poll() {
                    drop(tasks.swap_remove(at));
                }
            }
            _ => {
                // As an executor does.
                if let Some(at) = tasks.iter().position(Task::is_woken)
                    && tasks[at].poll()
                {
                    drop(tasks.swap_remove(at));
                }
            }
        }
    }
}

fn own(pool: &mut ShardPool, rng: &mut Rng, moment: Moment) {
    if moment == Moment::End {
        // Nothing is held here, and all others let go of theirs: nothing but a wake-up is needed.
        for _ in 0..rng.usize(1..4) {
            let bytes = rng.usize(1..LARGEST);
            let served = block_on(pool.acquire_async(bytes), patience());
            drop(served.expect("nobody woke a request that waits").expect("it waits until there is room"));
        }
        return;
    }
    match rng.u8(..16) {
        0 => pool.trim(),
        1 => pool.trim_to(rng.usize(..BUDGET)),
        2 | 3 => pool.trim_idle(Duration::from_millis(1)),
        4 => {
            let count = rng.usize(..8);
            match pool.preallocate(count, rng.usize(1..20_000)) {
                Ok(kept) => assert!(kept <= count),
                Err(error) => assert!(matches!(error, AcquireError::TooLarge { .. }), "{error}"),
            }
        }
        5..9 => {
            let timeout = Duration::from_micros(rng.u64(..3000));
            match pool.acquire_timeout(rng.usize(1..LARGEST), timeout) {
                Ok(buf) => drop(buf),
                Err(error) => assert!(matches!(error, AcquireError::Exhausted { .. }), "{error}"),
            }
        }
        _ => futures(pool, rng),
    }
    // The largest request is what the budget has room for, beside a header.
    let is_bounded = pool.max_capacity() <= BUDGET;
    assert!(!is_bounded || pool.stats().reserved_bytes <= BUDGET, "more than the budget");
}

/// Nothing is out: all memory can go, and the whole budget can be had. Requests that were forgotten
/// are in the way for a second.
fn at_rest(pool: &mut ShardPool) {
    all_goes(pool);
    let all = pool.max_capacity().min(BUDGET);
    let got = pool.acquire_timeout(all, patience());
    assert_eq!(got.map(drop), Ok(()), "budget that was lost");
    pool.trim();
}

/// Waits in each way, for as long as one may take.
fn wait(pool: &mut ShardPool, rng: &mut Rng) -> Result<Buf<ShardLease>, AcquireError> {
    if rng.u8(..4) == 0 {
        return pool.acquire_timeout(LARGEST, patience());
    }
    block_on(pool.acquire_async(LARGEST), patience()).expect("nobody woke a request that waits")
}

/// Buffers that go from the thread that acquires them to one that drops them, of a pool that is
/// mostly empty: nearly every request waits for a release. Some requests do not wait, so that their
/// releases are plain ones. All that was acquired comes back, so one that fails lost its wake-up.
fn handed(round: &Round) {
    let pool = ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right");
    thread::scope(|scope| {
        let pairs = 0..(round.threads() / 2) as u64;
        let threads = pairs.flat_map(|pair| {
            let (sender, receiver) = mpsc::channel::<Buf<ShardLease>>();
            let mut pool = pool.clone();
            let acquires = scope.spawn(move || {
                let mut rng = round.rng(pair);
                while !round.is_over() {
                    let buf = pool.acquire(LARGEST).or_else(|_| wait(&mut pool, &mut rng));
                    let sent = sender.send(buf.expect("nobody woke a request that waits"));
                    sent.expect("the other thread drops until this one ends");
                    round.step();
                }
            });
            [acquires, scope.spawn(move || receiver.into_iter().for_each(drop))]
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the process ends with a panic"));
    });
}

fn main() {
    let budget = |rng: &mut Rng| {
        let builder = ShardPool::builder().max_bytes(BUDGET).thread_cache(rng.usize(..4));
        builder.shards(2).shard_buffers(2).build().expect("settings are right")
    };
    let budget = Subject::shared(budget, own, at_rest);
    let default = Subject::shared(|_| ShardPool::new().expect("settings are right"), own, at_rest);
    let keeper = Subject::kept(|rng| {
        let builder = ShardPool::builder().thread_cache(rng.usize(..40)).shard_buffers(rng.usize(..40));
        Kept::new(builder.build().expect("settings are right"))
    });
    run(
        "shard",
        &[
            ("budget", &|one| round(&budget, one)),
            ("default", &|one| round(&default, one)),
            ("keeper", &|one| round(&keeper, one)),
            ("handed", &handed),
        ],
    );
}
