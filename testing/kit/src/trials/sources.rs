//! T21 to T23 of pools that have their memory piece by piece from a source of the program's. The
//! source refuses, panics at its n-th call, for every n, and uses the pool which calls it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use bufcore::{AcquireError, BufferPool, ConfigError, MemoryProvider};
use bufkeeper::Trim;
use bufkit::orphan;

use crate::hostile::Baggage;
use crate::source::{Lender, Loan};

/// A strategy, for these trials.
#[derive(Debug)]
pub struct Sourced<P> {
    /// A pool that has all memory for `sizes` from the source.
    pub make: fn(Arc<dyn MemoryProvider>) -> Result<P, ConfigError>,
    /// Sizes that between them have memory of each kind.
    pub sizes: &'static [usize],
}

impl<P> Sourced<P>
where
    P: BufferPool + Clone + Trim + Send + Sync + 'static,
    P::Lease: Send,
{
    fn over(&self, lender: &Arc<Lender>) -> P {
        (self.make)(Arc::clone(lender) as Arc<dyn MemoryProvider>).expect("settings are right")
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
            let baggage = Baggage::default();
            let theirs = baggage.clone();
            let lender = Arc::new(Lender::new(move |_| {
                theirs.let_go();
                Loan::Old
            }));
            let mut pool = self.over(&lender);
            for round in 0..4 {
                for &bytes in self.sizes {
                    // A buffer that a later call releases, and a trim.
                    let (mut taking, mut trimming, later) = (pool.clone(), pool.clone(), baggage.clone());
                    baggage.put(move || {
                        let buf = taking.acquire(bytes).expect("it lends");
                        later.put(move || drop(buf));
                    });
                    baggage.put(move || trimming.trim());
                }
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
            baggage.clear();
            if last_one {
                // What is released now may find the only handle in the source.
                baggage.put(move || drop(pool));
                drop(held);
                baggage.clear();
            } else {
                drop(pool);
                drop(held);
            }
            ended(&lender, "after calls from within");
        }
    }
}

/// Asserts that all was released, and that nobody else keeps the source.
#[track_caller]
fn ended(lender: &Arc<Lender>, when: &str) {
    orphan::sweep();
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
