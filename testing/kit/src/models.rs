//! What the models of the strategies share; only with `--cfg loom` or `--cfg shuttle`.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc as StdArc;
use std::task::Wake;

use bufcore::{Buf, BufferPool, Lease, SplitLease};
use bufkit::sync::checker;
use checker::sync::{Arc, Condvar, Mutex};
use checker::thread;
#[cfg(loom)]
use loom::cell::UnsafeCell;

#[cfg(shuttle)]
use self::seen::UnsafeCell;

#[cfg(loom)]
pub mod ends;

/// Stands for bytes, which no checker sees: written and read exactly where a user of the bytes
/// would. A missing order between two users shows as a race on it, under loom. Under shuttle, where
/// all is in order, it shows users at the same time.
#[derive(Debug)]
pub struct Shadow(UnsafeCell<u32>);

/// A cell that sees whether two threads are in it at once.
#[cfg(shuttle)]
mod seen {
    use core::cell;

    use shuttle::sync::atomic::{AtomicBool, Ordering};

    /// With the interface of loom's.
    #[derive(Debug)]
    pub(super) struct UnsafeCell<T> {
        value: cell::UnsafeCell<T>,
        /// How many read; -1 while one writes. Plain, since one thread runs at a time.
        users: cell::Cell<isize>,
        /// Where others may run.
        pause: AtomicBool,
    }

    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> Self {
            let (value, users) = (cell::UnsafeCell::new(value), cell::Cell::new(0));
            Self { value, users, pause: AtomicBool::new(false) }
        }

        pub(super) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            assert!(self.users.get() >= 0, "read while it is written");
            self.users.set(self.users.get() + 1);
            // ORDER: SeqCst, as all is here: nothing but a place where others may run.
            self.pause.load(Ordering::SeqCst);
            let result = f(self.value.get());
            self.users.set(self.users.get() - 1);
            result
        }

        pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            assert_eq!(self.users.get(), 0, "written while it is used");
            self.users.set(-1);
            // ORDER: SeqCst, as above.
            self.pause.load(Ordering::SeqCst);
            let result = f(self.value.get());
            self.users.set(0);
            result
        }
    }
}

/// Addresses that are taken, as far as a model knows: two that overlap are a failure. Its lock is
/// no part of the model.
#[cfg(shuttle)]
pub type Addresses = StdArc<crate::model::Shadow>;

/// Runs a model under shuttle: random schedules, and such of few preemptions (PCT), in turn.
///
/// `SHUTTLE_ITERATIONS` is the number of schedules of each kind; `iterations` unless set. A model
/// gets at most `SHUTTLE_SECONDS`, for each kind.
///
/// # Panics
///
/// When a schedule shows something; shuttle prints it, for `shuttle::replay`.
#[cfg(shuttle)]
pub fn explore(iterations: usize, model: impl Fn() + Clone + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    use shuttle::{Config, MaxSteps, Runner};

    let number = |name: &str| -> Option<u64> {
        Some(std::env::var(name).ok()?.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    let iterations = number("SHUTTLE_ITERATIONS").map_or(iterations, |count| count as usize);
    let mut config = Config::new();
    config.max_time = number("SHUTTLE_SECONDS").map(core::time::Duration::from_secs);
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config.stack_size = 256 << 10;
    Runner::new(RandomScheduler::new(iterations), config.clone()).run(model.clone());
    // The most that known defects of such code needed.
    const PREEMPTIONS: usize = 3;
    Runner::new(PctScheduler::new(PREEMPTIONS, iterations), config).run(model);
}

/// Chooses a number below `limit`, as the schedule does: the same when it is replayed.
#[cfg(shuttle)]
pub fn choice(limit: usize) -> usize {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_range(0..limit)
}

/// Goes through all that a careless executor does with a future: it is polled once or more without
/// a wake, with other wakers, and then dropped, or forgotten where it `may_forget`, or run to its
/// end as it is woken. `None` for one that was given up.
#[cfg(shuttle)]
pub fn handle_carelessly<F: Future>(future: F, may_forget: bool) -> Option<F::Output> {
    let signal = Signal::new();
    let mut future = Box::pin(future);
    for _ in 0..choice(3) {
        let waker = if choice(2) == 0 { Waker::noop().clone() } else { Waker::from(StdArc::clone(&signal)) };
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        if choice(2) == 0 {
            thread::yield_now();
        }
    }
    if choice(3) == 0 {
        if may_forget && choice(2) == 0 {
            core::mem::forget(future);
        }
        return None;
    }
    Some(finish(future.as_mut(), &signal))
}

// SAFETY: none needed but the checker's, which is what the models are for.
unsafe impl Sync for Shadow {}
// SAFETY: likewise.
unsafe impl Send for Shadow {}

impl Default for Shadow {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Shadow {
    /// Makes one for several threads.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Writes the bytes.
    pub fn write(&self) {
        // SAFETY: the checker reports the race if another access is not ordered with this one.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    /// Reads the bytes: how often they were written.
    pub fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

/// Acquires `bytes` bytes, and writes if the memory is the one that was at `address`.
pub fn acquire_again<P: BufferPool>(
    mut pool: P,
    bytes: usize,
    address: *const u8,
    shadow: &Shadow,
) -> Buf<P::Lease> {
    let again = pool.acquire(bytes).expect("the allocator has room");
    if again.as_ptr() == address {
        shadow.write();
    }
    again
}

/// Drops the handles of `pool`'s only memory on a thread each, and checks the order: what all did
/// with the bytes happens before they are written again.
///
/// # Panics
///
/// When a handle's thread sees another write than the first.
pub fn reuse_after_the_last<P: BufferPool, H: Send + 'static>(
    mut pool: P,
    handles: impl IntoIterator<Item = H>,
) {
    let shadow = Shadow::shared();
    shadow.write();
    let consumers: Vec<_> = handles
        .into_iter()
        .map(|handle| {
            let shadow = Arc::clone(&shadow);
            thread::spawn(move || {
                assert_eq!(shadow.read(), 1);
                drop(handle);
            })
        })
        .collect();
    thread::yield_now();
    // No second look: a queue that both sides read again would order what the release alone does
    // not.
    if let Ok(again) = pool.acquire(8) {
        shadow.write();
        drop(again);
    }
    for consumer in consumers {
        consumer.join().expect("the order is right");
    }
}

/// Checks that a part which is the only handle left of `back` has all of the memory: what the other
/// part's owner did with it, it did before.
///
/// # Panics
///
/// When `back` has fewer than four bytes.
pub fn compact_after_the_other_part_is_gone<L: SplitLease>(mut back: Buf<L>) {
    let shadow = Shadow::shared();
    let whole = back.capacity();
    let front = back.split_to(4);
    let reader = {
        let shadow = Arc::clone(&shadow);
        thread::spawn(move || {
            shadow.read();
            drop(front);
        })
    };
    thread::yield_now();
    back.compact();
    if back.capacity() == whole {
        shadow.write();
    }
    reader.join().expect("the order is right");
}

/// Checks that the only view left of `buf` may be written to: what the other one read, it read
/// before.
///
/// # Panics
///
/// When `buf` has no bytes: its views would hold nothing.
pub fn thaw_after_the_other_view_is_gone<L: Lease + 'static>(buf: Buf<L>) {
    assert!(!buf.is_empty(), "views of no bytes share nothing");
    let shadow = Shadow::shared();
    let view = buf.freeze();
    let other = view.clone();
    let reader = {
        let shadow = Arc::clone(&shadow);
        thread::spawn(move || {
            shadow.read();
            drop(other);
        })
    };
    thread::yield_now();
    if let Ok(buf) = view.try_into_mut() {
        shadow.write();
        drop(buf);
    }
    reader.join().expect("the order is right");
}

/// A signal that somebody waits for: the checker reports a deadlock when it never comes.
#[derive(Debug)]
pub struct Signal {
    is_given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Makes a signal that was not given.
    pub fn new() -> StdArc<Self> {
        StdArc::new(Self { is_given: Mutex::new(false), changed: Condvar::new() })
    }

    /// Gives it.
    ///
    /// # Panics
    ///
    /// When a thread of the model has panicked.
    pub fn give(&self) {
        *self.is_given.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Waits for it, and takes it.
    ///
    /// # Panics
    ///
    /// As [`give`](Self::give).
    pub fn take(&self) {
        let mut is_given = self.is_given.lock().unwrap();
        while !*is_given {
            is_given = self.changed.wait(is_given).unwrap();
        }
        *is_given = false;
    }
}

/// For futures.
impl Wake for Signal {
    fn wake(self: StdArc<Self>) {
        self.give();
    }
}

/// Runs a future to its end; when a wake-up is lost, there is none.
pub fn finish<F: Future>(mut future: Pin<&mut F>, signal: &StdArc<Signal>) -> F::Output {
    let waker = Waker::from(StdArc::clone(signal));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        signal.take();
        thread::yield_now();
    }
}

/// Two threads use what `counts` of two keep, and then count themselves off: the last one has it
/// alone.
#[cfg(loom)]
pub fn the_last_has_it_alone<C: Send + Sync + 'static>(counts: fn() -> C, leave: fn(&C) -> bool) {
    loom::model(move || {
        let shared = Arc::new((counts(), Shadow::default()));
        let use_and_leave = move |(counts, shadow): &(C, Shadow)| {
            shadow.read();
            if leave(counts) {
                shadow.write();
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || use_and_leave(&shared))
        };
        thread::yield_now();
        use_and_leave(&shared);
        other.join().unwrap();
    });
}
