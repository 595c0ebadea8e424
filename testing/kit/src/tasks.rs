//! Futures that are polled by hand, and wakers that count, or do what wakers should not.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Counts how often it is woken.
#[derive(Debug, Default)]
pub struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        // ORDER: SeqCst, for ease.
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counting {
    /// Returns how often it was woken.
    pub fn count(&self) -> usize {
        // ORDER: SeqCst, for ease.
        self.0.load(SeqCst)
    }
}

/// Makes a waker, and what it counts.
pub fn counting() -> (Arc<Counting>, Waker) {
    let counting = Arc::new(Counting::default());
    (Arc::clone(&counting), Waker::from(counting))
}

/// Polls once.
pub fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Runs a future on this thread. `None` when it is not done in time; nothing but a wake makes it be
/// polled.
pub fn block_on<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let started = Instant::now();
    loop {
        if let Poll::Ready(output) = poll(future.as_mut(), &waker) {
            return Some(output);
        }
        let left = limit.checked_sub(started.elapsed())?;
        thread::park_timeout(left);
        if started.elapsed() >= limit {
            return None;
        }
    }
}

/// Runs a task that does nothing but `operation`, which never has to wait: at least once in a
/// thousand operations the task lets others run, and wakes itself before that.
///
/// # Panics
///
/// Panics when it does not.
pub fn lets_others_run(mut operation: impl AsyncFnMut()) {
    const MOST: usize = 1000;
    let done = Cell::new(0);
    let task = async {
        while done.get() < MOST {
            operation().await;
            done.set(done.get() + 1);
        }
    };
    let mut task = pin!(task);
    let (wakes, waker) = counting();
    for _ in 1..=10 {
        done.set(0);
        let woken = wakes.count();
        let polled = poll(task.as_mut(), &waker);
        assert!(polled.is_pending(), "{} operations, and no other task had its turn", done.get());
        assert!(wakes.count() > woken, "who lets others run is woken for its next turn");
    }
}

/// Completes one of two futures and drops the other, as `select!` does. It polls `first` first.
pub async fn select<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Pending => second.as_mut().poll(cx),
        ready => ready,
    })
    .await
}

/// Makes a future and polls it once, until one is ready.
///
/// # Panics
///
/// Panics when a hundred in a row are pending.
pub fn poll_new<F: Future>(make: impl FnMut() -> F) -> F::Output {
    let mut polls = std::iter::repeat_with(make).take(100).map(|future| poll(pin!(future), Waker::noop()));
    let ready = polls.find_map(|polled| match polled {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    });
    ready.expect("a new future is polled once, and pending, again and again")
}

/// What a [`hostile`] waker does at one of its calls.
type Act = Box<dyn FnOnce() + Send>;

/// Does something once when it is woken, and something once when it is dropped.
struct Hostile {
    wake: Mutex<Option<Act>>,
    drop: Mutex<Option<Act>>,
}

fn take(act: &Mutex<Option<Act>>) -> Option<Act> {
    act.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        if let Some(act) = take(&self.wake) {
            act();
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        if let Some(act) = take(&self.drop) {
            act();
        }
    }
}

/// Makes a waker whose drop panics, when its last clone goes, after it was counted.
pub fn drop_panics(dropped: &Arc<Counting>) -> Waker {
    let count = Waker::from(Arc::clone(dropped));
    let panics = move || {
        count.wake();
        panic!("a waker's drop panics, as it was told to");
    };
    hostile(|| {}, panics)
}

/// Makes a waker that does `wake` when it is first woken, and `drop` when its last clone goes.
pub fn hostile(wake: impl FnOnce() + Send + 'static, drop: impl FnOnce() + Send + 'static) -> Waker {
    let wake: Act = Box::new(wake);
    let drop: Act = Box::new(drop);
    Waker::from(Arc::new(Hostile { wake: Mutex::new(Some(wake)), drop: Mutex::new(Some(drop)) }))
}
