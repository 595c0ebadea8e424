//! T21 to T23 of pools that have their memory piece by piece from a source of the program's. The
//! source refuses, panics at its n-th call, for every n, and uses the pool which calls it.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bufcore::strategy::orphans;
use bufcore::{AcquireError, Buf, BufferPool, ConfigError, Source, Trim};

use crate::source::{Ask, Lender, Loan};

/// A strategy, for these trials.
#[derive(Debug)]
pub struct Sourced<P> {
    /// A pool that has all memory for `sizes` from the source.
    pub make: fn(Arc<dyn Source>) -> Result<P, ConfigError>,
    /// Sizes that between them have memory of each kind.
    pub sizes: &'static [usize],
}

impl<P> Sourced<P>
where
    P: BufferPool + Clone + Trim + Send + Sync + 'static,
    P::Lease: Send,
{
    fn over(&self, lender: &Arc<Lender>) -> P {
        (self.make)(Arc::clone(lender) as Arc<dyn Source>).expect("settings are right")
    }

    /// Checks that what the source lends is zeroed where that was asked for. It goes back when pool
    /// and buffers are gone, in either order, and the source with it.
    pub fn lends(&self) {
        let lender = Arc::new(Lender::new(|_| Loan::Old));
        let mut pool = self.over(&lender);
        for round in 0..3 {
            let mut held = Vec::new();
            for &bytes in self.sizes {
                let mut buf = pool.acquire_zeroed(bytes).expect("it lends");
                assert!(buf.iter().all(|byte| *byte == 0), "{bytes} bytes, round {round}");
                buf.fill(1);
                held.push(buf);
            }
            assert!(lender.out() > 0);
            let half = held.split_off(held.len() / 2);
            thread::spawn(|| drop(half)).join().expect("releases do not panic");
            pool.trim();
        }
        let mut held: Vec<_> =
            self.sizes.iter().map(|&bytes| pool.acquire(bytes).expect("it lends")).collect();
        drop(pool);
        assert!(lender.out() > 0, "buffers are still out");
        held.truncate(1);
        thread::spawn(|| drop(held)).join().expect("releases do not panic");
        ended(&lender, "the pool first");
        drop(self.over(&lender));
        ended(&lender, "unused");
    }

    /// Checks that a refusal is an error of that request. Nothing counts that is not there, and the
    /// next request is served.
    pub fn refuses(&self) {
        let (lends, turn) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let is_open = Arc::clone(&lends);
        let lender = Arc::new(Lender::new(move |_| {
            // ORDER: SeqCst, for ease, here and below.
            match turn.fetch_add(1, SeqCst) % 2 {
                _ if is_open.load(SeqCst) => Loan::Zeroed,
                0 => Loan::OutOfMemory,
                _ => Loan::Refused,
            }
        }));
        let mut pool = self.over(&lender);
        for _ in 0..3 {
            for &bytes in self.sizes {
                let refused = pool.acquire(bytes).map(drop);
                assert_eq!(refused, Err(AcquireError::OutOfMemory { requested: bytes }));
            }
        }
        assert_eq!(
            (BufferPool::stats(&pool).reserved_bytes, lender.out()),
            (0, 0),
            "nothing counts that is not there"
        );
        lends.store(true, SeqCst);
        let held: Vec<_> = self.sizes.iter().map(|&bytes| pool.acquire(bytes).expect("it lends")).collect();
        lends.store(false, SeqCst);
        drop(held);
        drop(pool);
        ended(&lender, "after refusals");
    }

    /// Runs a program whose source panics at its n-th call, for every n: nobody else notices.
    pub fn panics(&self) {
        let mut calls = 0;
        for nth in 0.. {
            calls = self.one_that_panics(nth);
            if nth >= calls {
                break;
            }
        }
        assert!(calls > 4, "{calls} calls of a source");
    }

    /// Runs the program once, and returns how often the source was called.
    fn one_that_panics(&self, nth: usize) -> usize {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let lender = Arc::new(Lender::new(move |_| {
            if count.fetch_add(1, SeqCst) == nth {
                resume_unwind(Box::new("on purpose"));
            }
            Loan::Old
        }));
        let program = AssertUnwindSafe(|| {
            let mut pool = self.over(&lender);
            let mut take = || {
                let mut held = Vec::new();
                for &bytes in self.sizes {
                    match pool.acquire_zeroed(bytes) {
                        Ok(buf) => held.push(buf),
                        Err(error) => assert_eq!(error, AcquireError::OutOfMemory { requested: bytes }),
                    }
                }
                held
            };
            let first = take();
            let unwinds = catch_unwind(AssertUnwindSafe(|| {
                let _first = first;
                resume_unwind(Box::new("a consumer panics"));
            }));
            assert!(unwinds.is_err());
            let (second, third) = (take(), take());
            thread::spawn(|| drop(second)).join().expect("releases do not panic");
            pool.trim();
            assert!(BufferPool::stats(&pool).reserved_bytes > 0);
            // The pool ends with buffers out, and these with their thread.
            drop(pool);
            at_the_end_of_a_thread(third);
        });
        assert!(catch_unwind(program).is_ok(), "call {nth}: the panic went on");
        ended(&lender, "after a panic");
        calls.load(SeqCst)
    }

    /// Checks a source that acquires, releases, trims and drops handles, the last one too, in each
    /// of its calls.
    pub fn reenters(&self) {
        for last_one in [false, true] {
            let world = Arc::new(World::<P>::default());
            let (theirs, turn, sizes) = (Arc::clone(&world), AtomicUsize::new(0), self.sizes);
            let lender = Arc::new(Lender::new(move |ask| {
                theirs.deed(ask, turn.fetch_add(1, SeqCst), sizes);
                Loan::Old
            }));
            let mut pool = self.over(&lender);
            world.give(pool.clone());
            for round in 0..4 {
                let held: Vec<_> =
                    self.sizes.iter().map(|&bytes| pool.acquire_zeroed(bytes).expect("it lends")).collect();
                assert!(held.iter().all(|buf| buf.iter().all(|byte| *byte == 0)));
                match round {
                    0 => drop(held),
                    _ => thread::spawn(|| drop(held)).join().expect("releases do not panic"),
                }
                pool.trim();
            }
            let held: Vec<_> =
                self.sizes.iter().map(|&bytes| pool.acquire(bytes).expect("it lends")).collect();
            if last_one {
                // What is released now may find the only handle in the source.
                drop(pool);
                world.ends.store(true, SeqCst);
                drop(held);
                world.clear();
            } else {
                world.clear();
                drop(pool);
                drop(held);
            }
            drop(world);
            ended(&lender, "after calls from within");
        }
    }
}

/// Asserts that all was released, and that nobody else keeps the source.
#[track_caller]
fn ended(lender: &Arc<Lender>, when: &str) {
    orphans::sweep();
    assert_eq!((lender.out(), Arc::strong_count(lender)), (0, 1), "{when}");
}

/// Ends a thread with buffers in a variable of its own. A panic there would end the process.
fn at_the_end_of_a_thread<T: Send + 'static>(bufs: T) {
    thread_local! {
        static KEPT: RefCell<Option<Box<dyn Send>>> = const { RefCell::new(None) };
    }
    let keep = || KEPT.with(|kept| *kept.borrow_mut() = Some(Box::new(bufs)));
    thread::spawn(keep).join().expect("a thread ends");
}

thread_local! {
    /// Whether the source is at work on this thread: what it calls may call it.
    static IS_IN: Cell<bool> = const { Cell::new(false) };
}

/// What a source plays with. Nothing is locked while it calls a pool.
struct World<P: BufferPool> {
    pool: Mutex<Option<P>>,
    bufs: Mutex<Vec<Buf<P::Lease>>>,
    /// Whether it is to drop its handle.
    ends: AtomicBool,
}

impl<P: BufferPool> Default for World<P> {
    fn default() -> Self {
        Self { pool: Mutex::new(None), bufs: Mutex::new(Vec::new()), ends: AtomicBool::new(false) }
    }
}

impl<P: BufferPool + Clone + Trim> World<P> {
    fn give(&self, pool: P) {
        *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = Some(pool);
    }

    fn take(&self) -> Option<P> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn clear(&self) {
        drop(self.take());
        let bufs = std::mem::take(&mut *self.bufs.lock().unwrap_or_else(PoisonError::into_inner));
        drop(bufs);
    }

    /// Does what the source does in one call.
    fn deed(&self, ask: Ask, turn: usize, sizes: &[usize]) {
        if IS_IN.replace(true) {
            return;
        }
        if self.ends.load(SeqCst) && ask == Ask::TakeBack {
            self.clear();
        }
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(mut pool) = pool {
            match turn % 4 {
                0 | 1 => {
                    let buf = pool.acquire(sizes[turn / 4 % sizes.len()]).expect("it lends");
                    self.bufs.lock().unwrap_or_else(PoisonError::into_inner).push(buf);
                }
                2 => {
                    let buf = self.bufs.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    drop(buf);
                }
                _ => pool.trim(),
            }
        }
        IS_IN.set(false);
    }
}

/// The trials of [`Sourced`] pools, as tests: `$kinds` is an array of them.
#[macro_export]
macro_rules! sourced {
    ($kinds:expr) => {
        $crate::tests! {
            lent_and_given_back: $kinds.iter().for_each($crate::trials::sources::Sourced::lends);
            t21_sources_that_refuse: $kinds.iter().for_each($crate::trials::sources::Sourced::refuses);
            t22_sources_that_panic: $kinds.iter().for_each($crate::trials::sources::Sourced::panics);
            t23_sources_that_use_the_pool: $kinds.iter().for_each($crate::trials::sources::Sourced::reenters);
            t37_supplied_memory_is_zeroed: $kinds.iter().for_each($crate::trials::zeroed::t37_supplied);
        }
    };
}
