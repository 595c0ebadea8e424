//! Operations on a sharded pool with a budget. There are buffers that are split and sent, mappings for large ones, futures that are polled
//! late, without a wake or never, wakers that panic and come back in, and a keeper beside it all.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use bufcore::{AcquireError, Buf};
use bufshard::{Builder, HugePages, MapOptions, ShardLease, ShardPool};
use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, locked};
use testkit::identities;
use testkit::lockstep::Lockstep;
use testkit::tasks::poll;

use crate::drive::{Drive, End};
use crate::shared::Shared;
use crate::wakers::{Act, World, plan};

/// The most tasks of one program.
const TASKS: usize = 12;

type Served = Result<Buf<ShardLease>, AcquireError>;

/// A future that has a handle of the pool, which may be the last.
type Waiting = Pin<Box<dyn Future<Output = Served> + Send>>;

/// A future and its waker.
struct Task {
    bytes: usize,
    future: Waiting,
    waker: Waker,
    /// Whether it was woken since it was last polled.
    woken: Arc<AtomicBool>,
}

impl Task {
    fn new(world: &World, pool: &ShardPool, bytes: &mut Bytes<'_>, budget: usize) -> Self {
        let size = match bytes.below(4) {
            0 => bytes.size(),
            n => budget * n / 4,
        };
        let handle = pool.clone();
        let future: Waiting = Box::pin(async move { handle.acquire_async(size).await });
        let woken = Arc::new(AtomicBool::new(false));
        let waker = world.waker(&woken, plan(bytes));
        Self { bytes: size, future, waker, woken }
    }

    /// Polls it. `None` when it waits.
    fn poll(&mut self) -> Option<Served> {
        // ORDER: SeqCst, for ease.
        self.woken.store(false, SeqCst);
        match poll(Pin::new(&mut self.future), &self.waker) {
            Poll::Ready(served) => Some(served),
            Poll::Pending => None,
        }
    }

    fn is_woken(&self) -> bool {
        // ORDER: SeqCst, for ease.
        self.woken.load(SeqCst)
    }
}

/// A pool with the settings that the next bytes say, the end of the program, and the budget.
fn settings(bytes: &mut Bytes<'_>) -> (Builder, bool, End, usize) {
    let budget = bytes.pick([3000, 20_000, 100_000, 100_000, usize::MAX]);
    let builder = Builder::new()
        .thread_cache(bytes.below(5))
        .shards(1 + bytes.below(4))
        .shard_buffers(bytes.below(5))
        .smallest_pooled(bytes.pick([1, 1, 100]))
        .largest_pooled(bytes.pick([1000, 20_000, 100_000, 64 << 20]))
        .alignment(1 << bytes.below(9))
        .max_bytes(budget);
    let flags = bytes.byte();
    let mut builder = builder.wipe(flags & 1 != 0);
    if flags & 2 != 0 {
        let options = bytes.byte();
        let pages = match options & 3 {
            // Not there from the start: that would be 2 MiB for each buffer.
            0 => MapOptions::new().huge_pages(HugePages::Advise),
            1 => MapOptions::new().huge_pages(HugePages::Require),
            _ => MapOptions::new().populate(options & 4 != 0).lock(options & 8 != 0),
        };
        builder = builder.map_options(pages);
        if options & 16 != 0 {
            // The header is beside the mapping then.
            builder = builder.alignment(4096);
        }
    }
    if flags & 4 != 0 {
        builder = builder
            .max_cached_bytes(bytes.pick([0, 1, 1000, 30_000, 1 << 20]))
            .thread_cache(bytes.pick([0, 1, 7, 40, 1024]))
            .shard_buffers(bytes.pick([0, 1, 3, 100, 1 << 16]));
    }
    (builder, flags & 1 != 0, End::of(flags >> 4), budget)
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let (builder, wipes, end, budget) = settings(&mut bytes);
    let Ok(pool) = builder.build() else { return };
    let (most, budget) = (budget, budget.min(200_000));
    let handle = Arc::new(Mutex::new(Some(pool.clone())));
    let mut shared = Shared::new(|pool: &ShardPool| Some(pool.clone()));
    let world = world(&handle, shared.baggage.clone());
    let mut lockstep = Lockstep::over(pool, true);
    lockstep.set_refusal(|error, asked| match error {
        AcquireError::TooLarge { requested, .. }
        | AcquireError::Exhausted { requested, .. }
        | AcquireError::OutOfMemory { requested } => assert!(requested == asked && asked > 0, "{error}"),
        _ => panic!("{error}"),
    });
    if wipes {
        lockstep.set_zeroed(|buf| !buf.lease().is_fallback());
    }
    let mut drive = Drive::new(lockstep);
    let mut tasks: Vec<Task> = Vec::new();
    let mut idle: Vec<Task> = Vec::new();
    drive.run(&mut bytes, |drive, bytes| {
        let lockstep = &mut drive.lockstep;
        let at = bytes.below(256) % tasks.len().max(1);
        match bytes.below(32) {
            0..=3 if tasks.len() < TASKS => {
                let mut task = Task::new(&world, lockstep.pool(), bytes, budget);
                match task.poll() {
                    Some(served) => admit(lockstep, served, task.bytes),
                    None => tasks.push(task),
                }
            }
            // Polled whether it was woken or not, with the old waker or a new one.
            4..=7 if !tasks.is_empty() => {
                let mut task = tasks.swap_remove(at);
                if bytes.below(4) == 0 {
                    task.waker = world.waker(&task.woken, plan(bytes));
                }
                // A waker that panics takes the task with it.
                match task.poll() {
                    Some(served) => admit(lockstep, served, task.bytes),
                    None => tasks.push(task),
                }
            }
            8 if !tasks.is_empty() => drop(tasks.swap_remove(at)),
            // Never polled again, nor dropped.
            9 if !tasks.is_empty() => idle.push(tasks.swap_remove(at)),
            10 if !tasks.is_empty() => {
                let task = tasks.swap_remove(at);
                world.baggage.put(move || drop(task));
            }
            11 => lockstep.pool().trim_to(bytes.size()),
            12 => {
                let (count, size) = (bytes.below(12), bytes.size());
                if let Ok(kept) = lockstep.pool().preallocate(count, size) {
                    assert!(kept <= count);
                }
            }
            13 => {
                let size = bytes.size();
                if let Ok(buf) = lockstep.pool().acquire_timeout(size, Duration::ZERO) {
                    lockstep.admit(buf, size, Vec::new());
                }
            }
            14..=16 => sums(lockstep, most),
            _ => shared.step(lockstep, bytes),
        }
    });
    world.end();
    *locked(&handle) = None;
    if !end.pool_first {
        shared.clear();
        if drive.release(end) {
            run_all(&mut tasks);
            // Those who were woken often and are not polled may keep others waiting until they count as gone; or they go.
            idle.clear();
            run_all(&mut tasks);
            assert!(tasks.is_empty(), "{} sleep for ever", tasks.len());
            sums(&mut drive.lockstep, most);
            let pool = drive.lockstep.pool();
            // The first look notes, the second one frees, and what it put into the shards goes by the fourth.
            (0..4).for_each(|_| pool.trim_idle(Duration::ZERO));
            let stats = pool.stats();
            assert_eq!(stats.idle_bytes, 0, "nobody has used it: {stats:?}");
            pool.trim();
            let stats = pool.stats();
            assert_eq!((stats.in_use, stats.reserved_bytes), (0, 0), "all was released: {stats:?}");
        }
    }
    drive.finish(end);
    shared.clear();
    drop((tasks, idle));
    shared.end();
}

/// What the wakers of a program have: a handle of the pool.
fn world(handle: &Arc<Mutex<Option<ShardPool>>>, baggage: Baggage) -> World {
    let handle = Arc::clone(handle);
    World::new(baggage, move |act| {
        // A handle of its own: another's waker may come in meanwhile.
        let pool = locked(&handle).clone();
        match (act, pool) {
            (Act::Use, Some(pool)) => drop(pool.acquire(1000)),
            (Act::Trim, Some(pool)) => pool.trim(),
            _ => {}
        }
    })
}

/// The counts add up, for the pool and for each class, and what is out is reserved, within the budget.
fn sums(lockstep: &mut Lockstep<ShardPool>, budget: usize) {
    let own = lockstep.own_bytes(|_| false);
    let (is_clear, claimed) = (lockstep.is_clear(), lockstep.claimed_bytes());
    let (classes, totals) = (lockstep.pool().class_stats(), lockstep.pool().stats());
    identities::check(&totals, own, is_clear);
    assert!(claimed + totals.idle_bytes <= totals.reserved_bytes, "{claimed} bytes are out: {totals:?}");
    assert!(totals.reserved_bytes <= budget, "{totals:?} of {budget}");
    assert!(totals.reserved_bytes >= totals.in_use_bytes + totals.idle_bytes, "{totals:?}");
    let mut idle_bytes = 0;
    for class in &classes {
        let idle = class.thread_idle + class.shard_idle;
        let gone = class.discards + class.trims;
        let now = (class.in_use + idle) as u64;
        assert_eq!(class.allocations + class.preallocations, now + gone, "{class:?}");
        idle_bytes += idle * class.bytes;
    }
    let pages = lockstep.pool().page_stats();
    assert_eq!(totals.idle_bytes, idle_bytes + pages.dirty_bytes + pages.free_block_bytes, "{totals:?}");
}

fn admit(lockstep: &mut Lockstep<ShardPool>, served: Served, bytes: usize) {
    match served {
        Ok(buf) => lockstep.admit(buf, bytes, Vec::new()),
        Err(error) => assert!(!matches!(error, AcquireError::Exhausted { .. }), "{error}"),
    }
}

/// Polls all that are woken until all are done, or nobody is woken any more.
fn run_all(tasks: &mut Vec<Task>) {
    while let Some(at) = tasks.iter().position(Task::is_woken) {
        if let Some(served) = tasks[at].poll() {
            drop(tasks.swap_remove(at));
            drop(served);
        }
    }
}
