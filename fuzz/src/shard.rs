//! Operations on a sharded pool with a budget: buffers that are split and sent, futures that are polled late, without a wake or never,
//! wakers that panic and come back in.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, Buf};
use bufshard::{Builder, ShardLease, ShardPool};
use buftest::bytes::Bytes;
use buftest::lockstep::Lockstep;
use buftest::tasks::poll;
use buftest::wakers::{Event, hooked};

use crate::drive::{Drive, End};
use crate::hostile::{Baggage, Others, guarded, locked, panic_on_purpose};

/// Tasks of one program at the most.
const TASKS: usize = 12;

type Served = Result<Buf<ShardLease>, AcquireError>;

/// A future that has a handle of the pool, which may be the last.
type Waiting = Pin<Box<dyn Future<Output = Served> + Send>>;

/// What a waker does, once, at its first event of a kind.
#[derive(Clone, Copy)]
enum Act {
    Panic,
    LetGo,
    Use,
    Trim,
}

/// A future and its waker.
struct Task {
    bytes: usize,
    future: Waiting,
    waker: Waker,
    /// Whether it was woken since it was last polled.
    woken: Arc<AtomicBool>,
}

/// What the wakers of a program have.
#[derive(Clone)]
struct World {
    pool: Arc<Mutex<Option<ShardPool>>>,
    baggage: Baggage,
    /// From then on wakers wake, and nothing else.
    over: Arc<AtomicBool>,
}

impl World {
    fn waker(&self, woken: &Arc<AtomicBool>, planned: Option<(Event, Act)>) -> Waker {
        let (world, woken) = (self.clone(), Arc::clone(woken));
        let planned = Mutex::new(planned);
        hooked(move |event| {
            // ORDER: SeqCst, for ease, here and below: a test's switches.
            if event == Event::Wake {
                woken.store(true, SeqCst);
            }
            let act = {
                let mut planned = locked(&planned);
                planned.take_if(|planned| planned.0 == event)
            };
            // ORDER: SeqCst, as above.
            if let Some((_, act)) = act
                && !world.over.load(SeqCst)
            {
                world.act(act);
            }
        })
    }

    fn act(&self, act: Act) {
        // A handle of its own: another's waker may come in meanwhile.
        let pool = locked(&self.pool).clone();
        match act {
            Act::Panic => panic_on_purpose(),
            Act::LetGo => {
                self.baggage.let_go();
                self.baggage.let_go();
            }
            Act::Use => drop(pool.map(|pool| pool.acquire(1000))),
            Act::Trim => {
                if let Some(pool) = pool {
                    pool.trim();
                }
            }
        }
    }
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

fn plan(bytes: &mut Bytes<'_>) -> Option<(Event, Act)> {
    let event = match bytes.below(8) {
        0..=1 => Event::Wake,
        2 => Event::Drop,
        3 => Event::Clone,
        _ => return None,
    };
    Some((event, bytes.pick([Act::Panic, Act::LetGo, Act::Use, Act::Trim])))
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
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
    let (wipes, end) = (flags & 1 != 0, End::of(flags >> 4));
    let Ok(pool) = builder.wipe(wipes).build() else { return };
    let budget = budget.min(200_000);
    let world = World {
        pool: Arc::new(Mutex::new(Some(pool.clone()))),
        baggage: Baggage::default(),
        over: Arc::default(),
    };
    let mut lockstep = Lockstep::over(pool, |_| None, true);
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
    let (mut idle, mut others): (Vec<Task>, _) = (Vec::new(), Others::default());
    drive.run(&mut bytes, |drive, bytes| {
        let lockstep = &mut drive.lockstep;
        let live = bytes.below(256);
        let at = live % tasks.len().max(1);
        match bytes.below(20) {
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
            11 => {
                if let Some(live) = lockstep.take(live) {
                    world.baggage.put(move || live.end());
                }
            }
            12 => lockstep.split(live, bytes.size(), true),
            13 => lockstep.split(live, bytes.size(), false),
            14 => match bytes.below(4) {
                0 => lockstep.pool().trim(),
                1 => lockstep.pool().trim_to(bytes.size()),
                _ => lockstep.pool().trim_idle(Duration::ZERO),
            },
            15 => {
                let (count, size) = (bytes.below(12), bytes.size());
                if let Ok(kept) = lockstep.pool().preallocate(count, size) {
                    assert!(kept <= count);
                }
            }
            16 => {
                let size = bytes.size();
                if let Ok(buf) = lockstep.pool().acquire_timeout(size, Duration::ZERO) {
                    lockstep.admit(buf, size, Vec::new());
                }
            }
            17 => {
                let (size, pool) = (bytes.size(), lockstep.pool().clone());
                let served = thread::spawn(move || guarded(|| pool.acquire(size)));
                if let Some(Ok(buf)) = served.join().expect("no panic but on purpose") {
                    lockstep.admit(buf, size, Vec::new());
                }
            }
            18 => {
                let handle = lockstep.pool().clone();
                *lockstep.pool() = handle;
            }
            _ => others.work(bytes.below(4)),
        }
    });
    // ORDER: SeqCst, for ease.
    world.over.store(true, SeqCst);
    *locked(&world.pool) = None;
    if !end.pool_first {
        world.baggage.clear();
        if drive.release(end) {
            run_all(&mut tasks);
            // Those who were woken often and are not polled may keep others waiting until they count as gone; or they go.
            idle.clear();
            run_all(&mut tasks);
            assert!(tasks.is_empty(), "{} sleep for ever", tasks.len());
            let pool = drive.lockstep.pool();
            pool.trim();
            let stats = pool.stats();
            assert_eq!((stats.in_use, stats.reserved_bytes), (0, 0), "all is back: {stats:?}");
        }
    }
    drive.finish(end);
    world.baggage.clear();
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
