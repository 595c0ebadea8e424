//! The keeper, over pools that tell what it does: when it looks, what it asks for, and what it
//! survives.

mod mutex;
mod panics;
mod watches;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufcore::PoolStats;
use bufkeeper::{Keeper, KeeperHandle, KeeperThread, PressureSource, Trim, Watch, WeakPool};
use bufkit::GrowthSignal;

const AGE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(60);

/// What a keeper did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Trim,
    Idle(Duration),
    Armed,
}

/// A pool of which the test says what it has.
#[derive(Default)]
pub(crate) struct Fake {
    events: Mutex<Vec<Event>>,
    reserved: AtomicUsize,
    uses: AtomicUsize,
    growth: Option<GrowthSignal>,
}

impl Fake {
    fn with_bell() -> Arc<Self> {
        Arc::new(Self { growth: Some(GrowthSignal::default()), ..Self::default() })
    }

    /// What happened since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().expect("nothing panics"))
    }

    fn looks(&self) -> usize {
        self.events().iter().filter(|&&event| event != Event::Armed).count()
    }

    fn note(&self, event: Event) {
        self.events.lock().expect("nothing panics").push(event);
    }

    fn set_reserved(&self, bytes: usize) {
        // ORDER: SeqCst, for ease.
        self.reserved.store(bytes, SeqCst);
    }
}

impl Trim for &Fake {
    fn trim(&mut self) {
        self.note(Event::Trim);
    }

    fn trim_idle(&mut self, age: Duration) {
        self.note(Event::Idle(age));
    }

    fn stats(&self) -> Option<PoolStats> {
        let mut stats = PoolStats::default();
        // ORDER: SeqCst, for ease.
        stats.reserved_bytes = self.reserved.load(SeqCst);
        Some(stats)
    }

    fn uses(&self) -> usize {
        // ORDER: SeqCst, for ease.
        self.uses.load(SeqCst)
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let Some(growth) = &self.growth else { return false };
        self.note(Event::Armed);
        growth.register(waker)
    }
}

/// A keeper without the pressure of the system that the tests run on.
fn keeper() -> Keeper {
    Keeper::new().purge_delay(AGE).pressure(PressureSource::none())
}

/// Waits until `is_so`, and fails when that takes too long.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LIMIT / 2, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Calls `tick` as it says, and returns the pauses.
fn pauses<const N: usize>(keeper: &mut Keeper, now: &mut Instant) -> [Duration; N] {
    [(); N].map(|()| {
        let next = keeper.tick(*now);
        let pause = next - *now;
        *now = next;
        pause
    })
}

#[test]
fn looks_once_an_age_while_something_changes() {
    let pool = Arc::new(Fake::default());
    let mut keeper = keeper().watch(&pool);
    let mut now = Instant::now();
    for round in 1..5 {
        // ORDER: SeqCst, for ease.
        pool.uses.store(round, SeqCst);
        assert_eq!(keeper.tick(now), now + AGE);
        assert_eq!(keeper.tick(now + AGE / 2), now + AGE, "too early");
        let events = pool.events();
        assert!(matches!(events[..], [Event::Idle(age)] if age <= AGE && age >= AGE / 2), "{events:?}");
        now += AGE;
    }
}

#[test]
fn the_clock_may_end() {
    let mut now = Instant::now();
    let mut step = Duration::MAX;
    while step > Duration::ZERO {
        match now.checked_add(step) {
            Some(later) => now = later,
            None => step /= 2,
        }
    }
    let pool = Arc::new(Fake::default());
    pool.set_reserved(1);
    let mut keeper = keeper().purge_delay(Duration::MAX).watch(&pool);
    for _ in 0..3 {
        assert!(keeper.tick(now) <= now);
    }
    assert!(keeper.tick(Instant::now()) > Instant::now());
}

#[test]
fn looks_rarely_while_nothing_changes() {
    let pool = Arc::new(Fake::default());
    let mut keeper = keeper().watch(&pool);
    let mut now = Instant::now();
    assert_eq!(pauses(&mut keeper, &mut now), [1, 2, 4, 8, 8, 8].map(|ages| AGE * ages));
    pool.set_reserved(1500);
    assert_eq!(pauses(&mut keeper, &mut now), [1, 2, 4, 8, 8, 8].map(|ages| AGE * ages));
    // ORDER: SeqCst, for ease.
    pool.uses.store(1, SeqCst);
    assert_eq!(pauses(&mut keeper, &mut now), [1, 2].map(|ages| AGE * ages));
    assert_eq!(pool.looks(), 14);
}

/// Files that say how much pressure there is, until this is dropped.
pub(crate) struct Files(pub(crate) std::path::PathBuf);

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("bufcore-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("there is room");
        Self(root)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }

    fn stall(&self, some: f32, full: f32) {
        let text = format!("some avg10={some:.2} avg60=0.00\nfull avg10={full:.2} avg60=0.00\n");
        self.write("proc/pressure/memory", &text);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn pressure_shortens_the_age() {
    let files = Files::new("shortens");
    files.stall(0.0, 0.0);
    let pool = Arc::new(Fake::default());
    let mut keeper = Keeper::new().purge_delay(AGE).pressure(PressureSource::under(&files.0)).watch(&pool);
    let mut now = Instant::now();
    let mut look = |uses, age| {
        // ORDER: SeqCst, for ease.
        pool.uses.store(uses, SeqCst);
        let next = keeper.tick(now);
        assert_eq!(next, now + age);
        now = next;
        pool.events()
    };
    let calm = look(1, AGE);
    files.stall(15.0, 0.0);
    let medium = look(2, AGE / 2);
    let ([Event::Idle(calm)], [Event::Idle(medium)]) = (&calm[..], &medium[..]) else {
        panic!("{calm:?} {medium:?}");
    };
    assert_eq!(*calm, *medium * 2);
    files.stall(80.0, 60.0);
    assert_eq!(look(3, AGE), [Event::Trim]);
    assert_eq!(look(4, AGE), [Event::Trim]);
    files.stall(0.0, 0.0);
    assert_eq!(look(5, AGE), [Event::Idle(*calm)]);
}

/// An empty pool is left alone for long, and what it takes wakes the thread.
#[test]
fn a_pool_that_grows_wakes_the_thread() {
    let pool = Fake::with_bell();
    let running =
        keeper().purge_delay(Duration::from_millis(10)).watch(&pool).spawn().expect("a thread starts");
    let mut armed = 0;
    wait_until("it does not ask to be woken", || {
        armed += pool.events().iter().filter(|&&event| event == Event::Armed).count();
        armed >= 8
    });
    // It sleeps for 2.56 s from here on.
    let grown = Instant::now();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(pool.looks(), 0, "it does not leave an empty pool alone");
    pool.set_reserved(1 << 20);
    pool.growth.as_ref().expect("it has one").notify();
    wait_until("the ring does not wake it", || pool.looks() > 0);
    assert!(grown.elapsed() < Duration::from_secs(2), "only the end of its pause does");
    drop(running);
}

#[test]
fn a_pool_that_ended_is_let_go() {
    let [kept, ended, also_ended] = [(); 3].map(|()| Arc::new(Fake::default()));
    let mut keeper = keeper().watch(&ended).watch(&kept).watch(&also_ended);
    let weak = Arc::downgrade(&ended);
    let now = Instant::now();
    keeper.tick(now);
    assert_eq!((keeper.watched(), weak.strong_count()), (3, 1), "it keeps none");
    drop((ended, also_ended));
    keeper.tick(now + AGE);
    assert_eq!((keeper.watched(), weak.weak_count()), (1, 0));
    assert_eq!(kept.looks(), 2);
}

#[test]
fn dropping_it_ends_the_thread_at_once() {
    let pool = Fake::with_bell();
    let running =
        keeper().purge_delay(Duration::from_secs(3600)).watch(&pool).spawn().expect("a thread starts");
    wait_until("it does not look", || pool.looks() == 1);
    let started = Instant::now();
    drop(running);
    assert!(started.elapsed() < Duration::from_secs(5), "it sleeps for an hour");
    assert_eq!(Arc::weak_count(&pool), 0, "it has let go of the pool");
}

#[test]
fn pools_are_added_while_it_sleeps() {
    let running = keeper().purge_delay(Duration::from_secs(3600)).spawn().expect("a thread starts");
    let (first, second) = (Arc::new(Fake::default()), Arc::new(Fake::default()));
    running.watch(&first);
    wait_until("the first is not looked at", || first.looks() == 1);
    let handle = running.handle();
    handle.watch(&second);
    wait_until("the second is not looked at", || second.looks() == 1);
    drop(running);
    handle.watch(&second); // nobody is there
    assert_eq!(Arc::weak_count(&second), 0, "nobody lets go of it");
}

/// A keeper that has ended, in whatever form, keeps nothing of what it is given, and of what it
/// was.
#[test]
fn a_keeper_that_ended_keeps_nothing() {
    #[track_caller]
    fn keeps_nothing(handle: &KeeperHandle) {
        let pool = Arc::new(Fake::default());
        for _ in 0..1000 {
            handle.watch(&pool);
        }
        assert_eq!(Arc::weak_count(&pool), 0, "it keeps a box for each call");
    }
    let running = keeper().spawn().expect("a thread starts");
    let handle = running.handle();
    drop(running);
    keeps_nothing(&handle);
    // One that never ran.
    let pool = Arc::new(Fake::default());
    let ended = keeper();
    let handle = ended.handle();
    handle.watch(&pool);
    drop(ended);
    assert_eq!(Arc::weak_count(&pool), 0, "it was new");
    keeps_nothing(&handle);
    // A task, which is woken no more.
    let (wakes, waker) = testkit::tasks::counting();
    for is_polled in [false, true] {
        let ended = keeper();
        let handle = ended.handle();
        let mut task = Box::pin(ended.run(|_| std::future::pending::<()>()));
        if is_polled {
            assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(task);
        keeps_nothing(&handle);
    }
    drop(waker);
    assert_eq!((wakes.count(), Arc::strong_count(&wakes)), (0, 1), "its waker is kept");
}

/// Starts and ends come at any moment of each other, and of what the keeper does at first.
#[test]
fn it_ends_while_it_starts() {
    for round in 0..500 {
        let pool = Arc::new(Fake::default());
        let running = keeper().purge_delay(Duration::from_secs(3600)).spawn().expect("a thread starts");
        if round % 2 == 0 {
            running.watch(&pool);
        }
        let started = Instant::now();
        drop(running);
        assert!(started.elapsed() < Duration::from_secs(20), "it sleeps for an hour");
    }
}

/// Nothing wakes a loop: a pool that is given to a keeper without any is looked at in time.
#[test]
fn without_pools_a_loop_looks_every_eight_ages() {
    let mut keeper = keeper();
    let handle = keeper.handle();
    let now = Instant::now();
    let next = keeper.tick(now);
    assert!(next - now <= 8 * AGE, "{:?}", next - now);
    let pool = Arc::new(Fake::default());
    handle.watch(&pool);
    keeper.tick(next);
    assert_eq!(pool.looks(), 1);
    // One with a shorter pause looks as often as that says.
    assert_eq!(self::keeper().max_sleep(2 * AGE).tick(now), now + 2 * AGE);
}

/// A pool that drops the keeper which looks at it.
struct Drops {
    keeper: Mutex<Option<KeeperThread>>,
    is_done: AtomicBool,
}

impl Trim for &Drops {
    fn trim(&mut self) {
        let keeper = self.keeper.lock().expect("nothing panics").take();
        if let Some(keeper) = keeper {
            keeper.watch(&Arc::new(Fake::default()));
            drop(keeper);
            // ORDER: SeqCst, for ease.
            self.is_done.store(true, SeqCst);
        }
    }

    fn stats(&self) -> Option<PoolStats> {
        Some(PoolStats::default())
    }
}

#[test]
fn it_is_dropped_and_called_from_within_a_look() {
    let pool = Arc::new(Drops { keeper: Mutex::new(None), is_done: AtomicBool::new(false) });
    let running =
        keeper().purge_delay(Duration::from_millis(10)).watch(&pool).spawn().expect("a thread starts");
    *pool.keeper.lock().expect("nothing panics") = Some(running);
    // ORDER: SeqCst, for ease.
    wait_until("it does not end", || pool.is_done.load(SeqCst) && Arc::weak_count(&pool) == 0);
}

#[test]
fn as_a_task() {
    fn is_send<F: Future + Send>(future: F) -> F {
        future
    }
    let pool = Fake::with_bell();
    // Not empty, and woken for all that.
    pool.set_reserved(1500);
    let (asked, sleeps) = mpsc::channel();
    let ready = Arc::new(AtomicBool::new(false));
    let is_ready = Arc::clone(&ready);
    let keeper = keeper().watch(&pool);
    let handle = keeper.handle();
    let mut task = pin!(is_send(keeper.run(move |time| {
        asked.send(time).expect("the test listens");
        let ready = Arc::clone(&is_ready);
        std::future::poll_fn(move |_| {
            // ORDER: SeqCst, for ease.
            if ready.swap(false, SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
    })));
    let (wakes, waker) = testkit::tasks::counting();
    let mut cx = Context::from_waker(&waker);
    assert!(task.as_mut().poll(&mut cx).is_pending());
    assert_eq!((pool.looks(), sleeps.try_iter().collect::<Vec<_>>()), (1, vec![AGE]));
    assert!(task.as_mut().poll(&mut cx).is_pending());
    assert_eq!((pool.looks(), sleeps.try_iter().count(), wakes.count()), (0, 0, 0), "it sleeps");
    // The timer.
    thread::sleep(AGE);
    // ORDER: SeqCst, for ease.
    ready.store(true, SeqCst);
    assert!(task.as_mut().poll(&mut cx).is_pending());
    assert_eq!(pool.events().len(), 2, "a look, and it asked to be woken");
    assert_eq!(sleeps.try_iter().collect::<Vec<_>>(), [AGE * 2]);
    // The pool, and a new one.
    pool.growth.as_ref().expect("it has one").notify();
    assert_eq!(wakes.count(), 1);
    let other = Arc::new(Fake::default());
    handle.watch(&other);
    assert!(task.as_mut().poll(&mut cx).is_pending());
    assert_eq!(other.looks(), 1);
    assert!(sleeps.try_iter().all(|time| time <= AGE), "it does not wait for the longer time");
}
