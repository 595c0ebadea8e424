//! Requests that wait for a pool which serves one at a time. They are polled late, without a wake, with another waker, given up, forgotten;
//! for a time; and as the last owner of the pool.

use std::future::Future;
use std::mem::{self, ManuallyDrop};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, SplitLease};
use bufring::RingPool;
use bufslot::SlotPool;
use buftest::bytes::Bytes;
use buftest::lockstep::Live;
use buftest::tasks::poll;
use buftest::wakers::{Event, hooked};

use crate::drive::Drive;
use crate::hostile::{Baggage, guarded, locked};
use crate::wakers::{World, plan};

/// No request is for more.
const MOST: usize = 100_000;
/// The time of a request for which everything comes back meanwhile, and of one that may wait in vain.
const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_micros(200);

/// What a request comes to.
type Served<P> = Result<Buf<<P as BufferPool>::Lease>, AcquireError>;

/// Where the waker of a future finds it.
type Place = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// A pool that serves one request at a time.
pub(crate) trait Waits: BufferPool<Lease: SplitLease> + Send + 'static {
    /// The pool's `acquire_async`.
    fn wait(&mut self, bytes: usize) -> impl Future<Output = Served<Self>> + Send + Unpin;

    /// The pool's `acquire_timeout`.
    fn wait_for(&mut self, bytes: usize, timeout: Duration) -> Served<Self>;
}

impl<F: BufferPool<Lease: SplitLease> + Send + 'static> Waits for SlotPool<F> {
    fn wait(&mut self, bytes: usize) -> impl Future<Output = Served<Self>> + Send + Unpin {
        self.acquire_async(bytes)
    }

    fn wait_for(&mut self, bytes: usize, timeout: Duration) -> Served<Self> {
        self.acquire_timeout(bytes, timeout)
    }
}

impl Waits for RingPool {
    fn wait(&mut self, bytes: usize) -> impl Future<Output = Served<Self>> + Send + Unpin {
        self.acquire_async(bytes)
    }

    fn wait_for(&mut self, bytes: usize, timeout: Duration) -> Served<Self> {
        self.acquire_timeout(bytes, timeout)
    }
}

/// A future that waits, and its waker. Dropping it forgets the future.
struct Request<F> {
    future: ManuallyDrop<F>,
    waker: Waker,
    /// Whether the waker was woken since the last poll.
    woken: Arc<AtomicBool>,
    /// Whether the last poll found nothing, and put the waker where a release finds it.
    sleeps: bool,
    /// What its wakers may release.
    baggage: Baggage,
}

impl<F: Future + Unpin> Request<F> {
    fn new(future: F, world: &World, bytes: &mut Bytes<'_>) -> Self {
        let woken = Arc::default();
        let waker = world.waker(&woken, plan(bytes));
        let baggage = world.baggage.clone();
        Self { future: ManuallyDrop::new(future), waker, woken, sleeps: false, baggage }
    }

    /// Polls it. `None` when it waits.
    ///
    /// A poll looks for memory before it says that there is none. So one that finds some, though nobody woke the request since the
    /// last one, shows that a wake-up was lost. Unless a waker released it in this very poll, which clones the new one and drops the
    /// old one.
    fn poll(&mut self) -> Option<F::Output> {
        // ORDER: SeqCst, for ease.
        let was_woken = self.woken.swap(false, SeqCst);
        let slept = mem::replace(&mut self.sleeps, false);
        let left = self.baggage.count();
        match guarded(|| poll(Pin::new(&mut *self.future), &self.waker)) {
            Some(Poll::Ready(output)) => {
                let released = self.baggage.count() < left;
                assert!(!slept || was_woken || released, "a wake-up was lost");
                Some(output)
            }
            Some(Poll::Pending) => {
                self.sleeps = true;
                None
            }
            // Its own waker panicked: nobody knows whether it is to be woken.
            None => {
                // ORDER: SeqCst, for ease.
                self.woken.store(true, SeqCst);
                None
            }
        }
    }

    /// Polls it with another waker. The old one must not be woken from that poll on, or at least not alone.
    fn poll_anew(&mut self, world: &World, bytes: &mut Bytes<'_>) -> Option<F::Output> {
        let before = mem::take(&mut self.woken);
        let old = mem::replace(&mut self.waker, world.waker(&self.woken, plan(bytes)));
        // May release what the request waits for. The clone that the request has is woken then.
        guarded(|| drop(old));
        // ORDER: SeqCst, for ease.
        self.woken.fetch_or(before.load(SeqCst), SeqCst);
        self.poll()
    }

    fn is_woken(&self) -> bool {
        // ORDER: SeqCst, for ease.
        self.woken.load(SeqCst)
    }

    /// Polls it as an executor does, until nobody wakes it any more.
    fn run(&mut self) -> Option<F::Output> {
        while self.is_woken() {
            if let Some(output) = self.poll() {
                return Some(output);
            }
        }
        None
    }

    /// Drops the future, which gives the request up.
    fn give_up(self) {
        let Self { future, waker, .. } = self;
        guarded(|| drop(ManuallyDrop::into_inner(future)));
        guarded(|| drop(waker));
    }
}

/// How many bytes to wait for: mostly such a number that others are in the way.
fn size<P: Waits>(pool: &P, bytes: &mut Bytes<'_>) -> usize {
    let most = pool.max_capacity().min(MOST);
    match bytes.below(4) {
        0 => bytes.size(),
        n => (most / 3).saturating_mul(n).min(most),
    }
}

/// A request that waits while the program's handles are released, and what comes of it. `is_more_out` says whether something else of the
/// pool is out.
pub(crate) fn wait<P: Waits>(
    drive: &mut Drive<P>,
    world: &World,
    bytes: &mut Bytes<'_>,
    mut is_more_out: bool,
) {
    let size = size(drive.lockstep.pool(), bytes);
    let (end, steps) = (bytes.below(4), bytes.below(12));
    is_more_out |= drive.has_parked();
    let mut held = drive.lockstep.take_all();
    let mut request = Request::new(drive.lockstep.pool().wait(size), world, bytes);
    let mut served = request.poll();
    for _ in 0..steps {
        if served.is_some() {
            break;
        }
        served = step(&mut request, &mut held, world, bytes);
    }
    match end {
        0 => request.give_up(),
        1 => {
            guarded(|| drop(request));
        }
        _ => {
            if served.is_none() {
                held.drain(..).for_each(Live::end);
                served = request.run();
            }
            if served.is_none() {
                // Not woken, so there is nothing for it.
                served = request.poll().or_else(|| request.run());
            }
            let is_nothing_out = held.is_empty() && !is_more_out && world.baggage.is_empty();
            let sleeps = served.is_none() && request.sleeps;
            assert!(!sleeps || !is_nothing_out, "it sleeps though nothing is out");
            request.give_up();
        }
    }
    drive.lockstep.put_back(held);
    match served {
        Some(Ok(buf)) => drive.lockstep.admit(buf, size, Vec::new()),
        Some(Err(error)) => drive.lockstep.refused(error, size),
        None => {}
    }
}

/// One step while a request waits.
fn step<F: Future + Unpin, L: SplitLease>(
    request: &mut Request<F>,
    held: &mut Vec<Live<L>>,
    world: &World,
    bytes: &mut Bytes<'_>,
) -> Option<F::Output> {
    let (kind, at) = (bytes.below(10), bytes.below(256) % held.len().max(1));
    match kind {
        0 => return request.poll(),
        1 => return request.poll_anew(world, bytes),
        2..=4 if !held.is_empty() => held.swap_remove(at).end(),
        5 if !held.is_empty() => {
            let live = held.swap_remove(at);
            let released = thread::scope(|scope| scope.spawn(move || live.end()).join());
            released.expect("a release does not panic");
        }
        6 if !held.is_empty() => {
            let live = held.swap_remove(at);
            world.baggage.put(move || live.end());
        }
        7 => {
            world.baggage.let_go();
        }
        // Woken, and late.
        8 => return None,
        _ => {}
    }
    request.run()
}

/// A request that waits for a time: in vain, or until another thread has released all.
pub(crate) fn wait_for<P: Waits>(
    drive: &mut Drive<P>,
    world: &World,
    bytes: &mut Bytes<'_>,
    is_more_out: bool,
) {
    let size = size(drive.lockstep.pool(), bytes);
    let served = match bytes.below(4) {
        0..=1 => drive.lockstep.pool().wait_for(size, Duration::ZERO),
        2 => drive.lockstep.pool().wait_for(size, Duration::from_nanos(1)),
        _ => {
            let is_all = !is_more_out && !drive.has_parked() && world.baggage.is_empty();
            let (held, pool) = (drive.lockstep.take_all(), drive.lockstep.pool());
            let served = thread::scope(|scope| {
                let releaser = scope.spawn(move || held.into_iter().for_each(Live::end));
                let served = pool.wait_for(size, if is_all { LONG } else { SHORT });
                releaser.join().expect("a release does not panic");
                served
            });
            if !is_all && matches!(served, Err(AcquireError::Exhausted { .. })) {
                // The time was over before the other thread was done.
                return;
            }
            served
        }
    };
    match served {
        Ok(buf) => drive.lockstep.admit(buf, size, Vec::new()),
        Err(error) => drive.lockstep.refused(error, size),
    }
}

/// The last owner of a pool is a future that waits, and its waker drops it: so the pool ends within the release that wakes it, with the
/// rest of what was out.
pub(crate) fn wait_last<P: Waits>(pool: P, live: Vec<Live<P::Lease>>) {
    let place = Place::default();
    let of_waker = Arc::clone(&place);
    let waker = hooked(move |event| {
        if event == Event::Wake {
            // While it is polled it is not there.
            let future = of_waker.try_lock().ok().and_then(|mut future| future.take());
            drop(future);
        }
    });
    let size = pool.max_capacity().min(MOST);
    let mut future = Box::pin(async move {
        let mut pool = pool;
        drop(pool.wait(size).await);
    });
    if poll(future.as_mut(), &waker).is_pending() {
        *locked(&place) = Some(future);
    }
    drop(waker);
    live.into_iter().for_each(Live::end);
    let left = locked(&place).take();
    drop(left);
}
