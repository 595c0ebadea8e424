//! T6 and T22 to T25 for requests that wait: polled late, without a wake, never again, forgotten,
//! by wakers that panic or come back in.
//!
//! [`waits!`](crate::waits!) stamps them out for a pool of 100 000 bytes: while 90 000 are out,
//! 80 000 are waited for.

mod programs;
#[cfg(target_os = "linux")]
pub mod system;

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bufcore::{AcquireError, Buf, Lease};

pub use self::programs::t24_programs;
use super::moved::{self, Waiting};
use super::scaled;
use crate::tasks::{Counting, block_on, counting, drop_panics, hostile, poll};

const HELD: usize = 90_000;
const WANTED: usize = 80_000;
/// Nobody waits so long unless a wake-up is lost.
const LONG: Duration = Duration::from_secs(30);

/// What a request that waits comes to.
type Served<P> = Result<Buf<<P as Waits>::Lease>, AcquireError>;
/// A request that waits.
pub type Request<'a, P> = Pin<Box<dyn Future<Output = Served<P>> + Send + 'a>>;

/// A pool that can wait, as the trials see it.
pub trait Waits: Send + 'static {
    /// The lease of its buffers.
    type Lease: Lease;

    /// Acquires as the pool does.
    ///
    /// # Errors
    ///
    /// Likewise.
    fn acquire(&mut self, bytes: usize) -> Served<Self>
    where
        Self: Sized;

    /// Acquires as the pool's own `acquire_timeout` does.
    ///
    /// # Errors
    ///
    /// Likewise.
    #[track_caller]
    fn acquire_timeout(&mut self, bytes: usize, timeout: Duration) -> Served<Self>
    where
        Self: Sized;

    /// Acquires as the pool's own `acquire_async` does.
    #[track_caller]
    fn acquire_async(&mut self, bytes: usize) -> Request<'_, Self>
    where
        Self: Sized;
}

/// Stamps out a type that [`Waits`] around a pool, whose own methods have the same names.
///
/// ```text
/// buftest::can_wait!(pub(crate) Pool: RingPool); // made by `Pool(pool)`
/// ```
#[macro_export]
macro_rules! can_wait {
    ($vis:vis $name:ident: $pool:ty) => {
        $vis struct $name($vis $pool);

        impl $crate::trials::waits::Waits for $name {
            type Lease = <$pool as $crate::bufcore::BufferPool>::Lease;

            fn acquire(
                &mut self,
                bytes: usize,
            ) -> Result<$crate::bufcore::Buf<Self::Lease>, $crate::bufcore::AcquireError> {
                self.0.acquire(bytes)
            }

            #[track_caller]
            fn acquire_timeout(
                &mut self,
                bytes: usize,
                timeout: ::core::time::Duration,
            ) -> Result<$crate::bufcore::Buf<Self::Lease>, $crate::bufcore::AcquireError> {
                self.0.acquire_timeout(bytes, timeout)
            }

            #[track_caller]
            fn acquire_async(&mut self, bytes: usize) -> $crate::trials::waits::Request<'_, Self> {
                ::std::boxed::Box::pin(self.0.acquire_async(bytes))
            }
        }
    };
}

/// Stamps out the trials for one pool, as a module of tests.
///
/// ```text
/// buftest::waits! {
///     name: waits,                                  // the module
///     pool: RingPool = || RingPool::new(100_000).unwrap(), // its type, and how to make one
/// }
/// ```
#[macro_export]
macro_rules! waits {
    (name: $name:ident, pool: $pool:ty = $make:expr $(,)?) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            use $crate::trials::waits as trials;

            $crate::can_wait!(pub(super) Pool: $pool);

            fn waiting() -> Pool {
                let make: fn() -> $pool = $make;
                Pool(make())
            }

            #[test]
            fn t24_served_when_buffers_come_back() {
                trials::t24_served_when_buffers_come_back(waiting);
            }

            #[test]
            fn t24_given_up() {
                trials::t24_given_up(waiting);
            }

            #[test]
            fn t24_forgotten() {
                trials::t24_forgotten(waiting);
            }

            #[test]
            fn t24_timeouts() {
                trials::t24_timeouts(waiting);
            }

            #[test]
            fn t24_too_large() {
                trials::t24_too_large(waiting);
            }

            #[test]
            fn t24_moved() {
                trials::t24_moved(waiting);
            }

            #[test]
            fn t24_releases_at_any_moment() {
                trials::t24_releases_at_any_moment(waiting);
            }

            #[test]
            fn t24_programs() {
                trials::t24_programs(waiting);
            }

            #[test]
            fn t22_a_waker_panics() {
                trials::t22_a_waker_panics(waiting);
            }

            #[test]
            fn t23_a_waker_comes_back_in() {
                trials::t23_a_waker_comes_back_in(waiting);
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t25_refused_calls() {
                $crate::process::alone(
                    module_path!(),
                    "t25_refused_calls",
                    ::core::time::Duration::from_secs(120),
                    || trials::system::t25_refused_calls(waiting),
                );
            }

            #[cfg(target_os = "linux")]
            #[test]
            fn t25_signals() {
                $crate::process::alone(
                    module_path!(),
                    "t25_signals",
                    ::core::time::Duration::from_secs(60),
                    || trials::system::t25_signals(waiting),
                );
            }

            #[test]
            fn t06_ended_after_a_wait() {
                trials::t06_ended_after_a_wait(waiting);
            }

            #[test]
            fn t22_a_waker_panics_when_the_pool_ends() {
                trials::t22_a_waker_panics_when_the_pool_ends(waiting);
            }
        }
    };
}

/// Takes a buffer that keeps all others out.
fn held<P: Waits>(pool: &mut P) -> Buf<P::Lease> {
    pool.acquire(HELD).expect("room")
}

/// Polls a request that does not have to wait. It may let other tasks run once, which wakes it.
fn now<P: Waits>(mut request: Request<'_, P>) -> Served<P> {
    let (wakes, waker) = counting();
    for polls in 1..=2 {
        match poll(request.as_mut(), &waker) {
            Poll::Ready(served) => return served,
            Poll::Pending => assert_eq!(wakes.count(), polls, "nobody else waits, and there is room"),
        }
    }
    panic!("it lets other tasks run twice")
}

/// Polls a request until it sleeps: nobody wakes it any more.
fn asleep<P: Waits>(request: &mut Request<'_, P>, wakes: &Counting, waker: &Waker) {
    loop {
        let before = wakes.count();
        assert!(poll(request.as_mut(), waker).is_pending(), "there is no room");
        if wakes.count() == before {
            return;
        }
    }
}

/// Checks that a request which `acquire` refuses waits, is woken by the release of what is in its
/// way, and is served. The release is on another thread, and on this one. What is left of the pool
/// is as before.
pub fn t24_served_when_buffers_come_back<P: Waits>(make: impl Fn() -> P) {
    for is_elsewhere in [true, false] {
        let mut pool = make();
        let held = held(&mut pool);
        assert!(matches!(pool.acquire(WANTED), Err(AcquireError::Exhausted { .. })));
        let (wakes, waker) = counting();
        let mut request = pool.acquire_async(WANTED);
        asleep::<P>(&mut request, &wakes, &waker);
        let before = wakes.count();
        if is_elsewhere {
            thread::spawn(move || drop(held)).join().expect("a release does not panic");
        } else {
            drop(held);
        }
        assert!(wakes.count() > before, "a wake-up was lost");
        let Poll::Ready(served) = poll(request.as_mut(), &waker) else { panic!("there is room") };
        let mut buf = served.expect("there is room");
        buf.resize(WANTED, 7).expect("asked for");
        drop(request);
        assert!(pool.acquire(WANTED).is_err(), "it is out");
        drop(buf);
        assert!(pool.acquire(HELD).is_ok());
    }
}

/// Checks that a request that is given up keeps nothing: neither memory nor a waker.
pub fn t24_given_up<P: Waits>(make: impl Fn() -> P) {
    let mut pool = make();
    let held = held(&mut pool);
    let (wakes, waker) = counting();
    let mut request = pool.acquire_async(WANTED);
    asleep::<P>(&mut request, &wakes, &waker);
    drop(request);
    drop(waker);
    assert_eq!(Arc::strong_count(&wakes), 1, "its waker is kept");
    let before = wakes.count();
    drop(held);
    assert_eq!(wakes.count(), before, "nobody waits");
    assert!(pool.acquire(WANTED).is_ok());
}

/// Checks that requests which are forgotten keep nobody else asleep.
pub fn t24_forgotten<P: Waits>(make: impl Fn() -> P) {
    for count in [1, 2, 10] {
        let mut pool = make();
        let held = held(&mut pool);
        for _ in 0..count {
            let mut request = pool.acquire_async(WANTED);
            assert!(poll(request.as_mut(), Waker::noop()).is_pending());
            mem::forget(request);
        }
        let (wakes, waker) = counting();
        let mut request = pool.acquire_async(WANTED);
        asleep::<P>(&mut request, &wakes, &waker);
        let before = wakes.count();
        drop(held);
        assert!(wakes.count() > before, "behind {count} that were forgotten");
        assert!(matches!(poll(request.as_mut(), &waker), Poll::Ready(Ok(_))));
    }
}

/// Checks all time-outs that there are, and one that a release ends.
pub fn t24_timeouts<P: Waits>(make: impl Fn() -> P) {
    let mut pool = make();
    let held = held(&mut pool);
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(3)] {
        let started = Instant::now();
        let refused = pool.acquire_timeout(WANTED, timeout);
        assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
        assert!((timeout..LONG).contains(&started.elapsed()));
    }
    thread::scope(|scope| {
        let waiter = scope.spawn(|| pool.acquire_timeout(WANTED, Duration::MAX).map(drop));
        thread::sleep(Duration::from_millis(20));
        drop(held);
        assert_eq!(waiter.join().expect("waiting does not panic"), Ok(()));
    });
    assert!(pool.acquire(HELD).is_ok());
}

/// Checks that a request that can never be served is refused at once.
pub fn t24_too_large<P: Waits>(make: impl Fn() -> P) {
    let mut pool = make();
    let _held = held(&mut pool);
    for bytes in [1_000_000, usize::MAX] {
        assert!(matches!(now::<P>(pool.acquire_async(bytes)), Err(AcquireError::TooLarge { .. })));
        assert!(matches!(pool.acquire_timeout(bytes, LONG), Err(AcquireError::TooLarge { .. })));
    }
    assert!(now::<P>(pool.acquire_async(0)).is_ok(), "no bytes are always there");
}

/// Moves a request from one executor to another.
pub fn t24_moved<P: Waits>(make: impl Fn() -> P) {
    moved::t24_moved(|| {
        let mut pool = make();
        let held = held(&mut pool);
        let future = Box::pin(async move {
            pool.acquire_async(WANTED).await.expect("it waits until there is room");
        });
        Waiting { future, event: Box::new(move || drop(held)) }
    });
}

/// Checks that a request is always woken, at whatever moment of its beginning the release on
/// another thread comes.
pub fn t24_releases_at_any_moment<P: Waits>(make: impl Fn() -> P) {
    let mut pool = make();
    let (give, taken) = std::sync::mpsc::channel::<(Vec<Buf<P::Lease>>, usize)>();
    let releaser = thread::spawn(move || {
        for (bufs, spins) in taken {
            for buf in bufs {
                for _ in 0..spins {
                    std::hint::spin_loop();
                }
                drop(buf);
            }
        }
    });
    for round in 0..scaled(100_000) {
        let bufs: Result<Vec<_>, _> = (0..3).map(|_| now::<P>(pool.acquire_async(30_000))).collect();
        give.send((bufs.expect("room"), round % 64 * 8)).expect("it takes them");
        let buf = if round % 4 == 0 {
            pool.acquire_timeout(WANTED, LONG)
        } else {
            block_on(pool.acquire_async(WANTED), LONG).expect("a wake-up was lost")
        };
        drop(buf.expect("it waits until there is room"));
    }
    drop(give);
    releaser.join().expect("a release does not panic");
}

/// Wakers that panic: woken by a release, which does not unwind, and dropped where they are
/// replaced, given up, or served.
pub fn t22_a_waker_panics<P: Waits>(make: impl Fn() -> P) {
    let mut pool = make();
    let first = held(&mut pool);
    let panicking = hostile(|| panic!("a waker panics, as it was told to"), || {});
    let mut request = pool.acquire_async(WANTED);
    assert!(poll(request.as_mut(), &panicking).is_pending());
    let release = thread::spawn(move || drop(first)).join();
    assert!(release.is_ok(), "the waker's panic came out of a release");
    assert!(matches!(poll(request.as_mut(), Waker::noop()), Poll::Ready(Ok(_))));
    drop(request);

    // The panic of a waker's drop ends there, too.
    let dropped = Arc::new(Counting::default());
    let mut first = Some(held(&mut pool));
    let (wakes, waker) = counting();
    let mut request = pool.acquire_async(WANTED);
    assert!(poll(request.as_mut(), &drop_panics(&dropped)).is_pending(), "there is no room");
    assert!(poll(request.as_mut(), &waker).is_pending());
    assert!(poll(request.as_mut(), &drop_panics(&dropped)).is_pending());
    drop(request);
    assert_eq!(dropped.count(), 2);
    let mut request = pool.acquire_async(WANTED);
    asleep::<P>(&mut request, &wakes, &waker);
    let before = wakes.count();
    drop(first.take());
    assert!(wakes.count() > before, "a wake-up was lost");
    assert!(matches!(poll(request.as_mut(), &waker), Poll::Ready(Ok(_))));
    drop(request);
    assert!(pool.acquire(HELD).is_ok(), "memory was lost");
}

/// Checks a waker that, when it is woken or dropped, drops other buffers of the pool.
pub fn t23_a_waker_comes_back_in<P: Waits>(make: impl Fn() -> P) {
    for is_woken in [true, false] {
        let mut pool = make();
        let first = held(&mut pool);
        let bufs: Vec<_> = (0..2).map(|_| now::<P>(pool.acquire_async(1000)).expect("room")).collect();
        let others = Arc::new(Mutex::new(bufs));
        let act = {
            let others = Arc::clone(&others);
            move || drop(mem::take(&mut *others.lock().expect("no panic")))
        };
        let waker = if is_woken { hostile(act, || {}) } else { hostile(|| {}, act) };
        let mut request = pool.acquire_async(WANTED);
        assert!(poll(request.as_mut(), &waker).is_pending());
        drop(waker);
        drop(first);
        if is_woken {
            assert!(others.lock().expect("no panic").is_empty(), "the waker was not called");
        }
        let served = block_on(request, LONG).expect("a wake-up was lost");
        drop(served.expect("all came back"));
        assert!(pool.acquire(HELD).is_ok());
    }
}

/// Ends the pool after a request was forgotten, with buffers out or without: the waker goes, and
/// releases do no harm.
pub fn t06_ended_after_a_wait<P: Waits>(make: impl Fn() -> P) {
    for is_out in [true, false] {
        let mut pool = make();
        let mut held = Some(held(&mut pool));
        let (wakes, waker) = counting();
        let mut request = pool.acquire_async(WANTED);
        assert!(poll(request.as_mut(), &waker).is_pending());
        mem::forget(request);
        drop(waker);
        if !is_out {
            drop(held.take());
        }
        drop(pool);
        if let Some(buf) = &mut held {
            buf.resize(HELD, 3).expect("asked for");
            assert_eq!(buf[HELD - 1], 3);
        }
        drop(held);
        assert_eq!(Arc::strong_count(&wakes), 1, "its waker is kept");
    }
}

/// Ends the pool after a request was forgotten, with a waker whose drop panics: neither the end nor
/// a late release does. Nothing of the pool is left behind, also when the pool ends while its
/// thread unwinds.
pub fn t22_a_waker_panics_when_the_pool_ends<P: Waits>(make: impl Fn() -> P) {
    for (is_out, unwinds) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut pool = make();
        let mut held = Some(held(&mut pool));
        let dropped = Arc::new(Counting::default());
        let mut request = pool.acquire_async(WANTED);
        assert!(poll(request.as_mut(), &drop_panics(&dropped)).is_pending());
        mem::forget(request);
        if !is_out {
            drop(held.take());
        }
        let ends = thread::spawn(move || {
            let _pool = pool;
            if unwinds {
                std::panic::resume_unwind(Box::new(()));
            }
        });
        assert_eq!(ends.join().is_err(), unwinds, "the waker's panic came out of the end");
        assert!(thread::spawn(move || drop(held)).join().is_ok(), "it came out of a late release");
        assert_eq!(dropped.count(), 1, "the waker is kept");
    }
}
