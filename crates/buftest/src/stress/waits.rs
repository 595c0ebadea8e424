//! Requests that wait for a pool which serves one at a time. They wait for a time, or as futures
//! that are polled late, without a wake, with another waker, dropped, or forgotten.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool};
use fastrand::Rng;

use super::patience;
use super::pools::Moment;
use crate::tasks::{block_on, counting, poll};

/// What a request comes to.
type Served<P> = Result<Buf<<P as BufferPool>::Lease>, AcquireError>;

/// A request that waits for a pool.
pub type Request<'a, P> = Pin<Box<dyn Future<Output = Served<P>> + 'a>>;

/// How a pool is waited for.
pub struct Waits<P: BufferPool> {
    /// Its `acquire_async`.
    pub wait: for<'a> fn(&'a mut P, usize) -> Request<'a, P>,
    /// Its `acquire_timeout`.
    pub wait_for: fn(&mut P, usize, Duration) -> Served<P>,
}

impl<P: BufferPool> std::fmt::Debug for Waits<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits").finish_non_exhaustive()
    }
}

impl<P: BufferPool> Waits<P> {
    /// Does a thread's own work with its pool, as [`Subject::own`](super::pools::Subject): requests
    /// of any size that the pool can serve.
    ///
    /// # Panics
    ///
    /// When nobody wakes a request for which everything has come back.
    pub fn own(&self, pool: &mut P, rng: &mut Rng, moment: Moment) {
        let bytes = rng.usize(1..=pool.max_capacity());
        if moment == Moment::End {
            // Nothing is held here, and all others let go of theirs: nothing but a wake-up is
            // needed.
            let served = if rng.u8(..4) == 0 {
                (self.wait_for)(pool, bytes, patience())
            } else {
                block_on((self.wait)(pool, bytes), patience()).expect("nobody woke a request that waits")
            };
            return drop(served.expect("it waits until there is room"));
        }
        if rng.u8(..4) == 0 {
            let timeout = Duration::from_micros(rng.u64(..3000));
            match (self.wait_for)(pool, bytes, timeout) {
                Ok(buf) => drop(buf),
                Err(error) => assert!(matches!(error, AcquireError::Exhausted { .. }), "{error}"),
            }
            return;
        }
        self.future(pool, bytes, rng);
    }

    /// Polls a future, which may not be served: the buffers in its way may be its own thread's.
    fn future(&self, pool: &mut P, bytes: usize, rng: &mut Rng) {
        let mut request = (self.wait)(pool, bytes);
        let (mut wakes, mut waker) = counting();
        let mut seen = None;
        for _ in 0..rng.usize(1..20) {
            match rng.u8(..16) {
                0 => return drop(request),
                1 if rng.u8(..64) == 0 => return mem::forget(request),
                2 => (wakes, waker) = counting(),
                3..6 => thread::yield_now(),
                6..10 => {}
                // As an executor does.
                _ if seen == Some(wakes.count()) => continue,
                _ => {}
            }
            seen = Some(wakes.count());
            if let Poll::Ready(served) = poll(request.as_mut(), &waker) {
                return drop(served.expect("it waits until there is room"));
            }
        }
    }
}
