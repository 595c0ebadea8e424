//! T25 for requests that wait: calls that the system refuses, and signals. For processes of their
//! own.

use std::thread;
use std::time::{Duration, Instant};

use bufcore::AcquireError;

use super::{LONG, WANTED, Waits, held};
use crate::errands::Errands;
use crate::process::{ThreadTimer, thread_sleeps};
use crate::sandbox;
use crate::tasks::block_on;

/// Until a request times out, and until what it waits for is released.
const SHORT: Duration = Duration::from_millis(25);
const A_WHILE: Duration = Duration::from_millis(5);
/// Checks that requests time out when they should, and are served when a buffer comes back, here
/// and there, as a thread and as a task. They sleep meanwhile, unless the system refuses that: then
/// they do not `sleep`.
fn waits<P: Waits>(make: impl Fn() -> P, there: &Errands, sleeps: bool) {
    let mut pool = make();
    let out = held(&mut pool);
    let (began, timer, before) = (Instant::now(), ThreadTimer::start(), thread_sleeps());
    let refused = pool.acquire_timeout(WANTED, SHORT).map(drop);
    let (took, worked) = (began.elapsed(), timer.elapsed());
    let has_slept = thread_sleeps() > before;
    assert!(matches!(refused, Err(AcquireError::Exhausted { .. })), "{refused:?}");
    assert!((SHORT..LONG / 2).contains(&took), "{took:?} of {SHORT:?}");
    // A busy machine may give a thread that never sleeps a third of the time.
    assert!(!sleeps || worked < SHORT / 6, "it worked for {worked:?} of {took:?}");
    // Or still less.
    assert!(!sleeps || has_slept, "it never slept in {took:?}");
    let release = |out| {
        there.start(move || {
            thread::sleep(A_WHILE);
            drop(out);
        })
    };
    let released = release(out);
    drop(pool.acquire_timeout(WANTED, LONG).expect("it comes back"));
    released.wait();
    let released = release(held(&mut pool));
    drop(block_on(pool.acquire_async(WANTED), LONG).expect("in time").expect("it comes back"));
    released.wait();
    assert!(pool.acquire(WANTED).is_ok());
}

/// Refuses one call that waits may make after the start.
pub fn t25_refused_calls<P: Waits>(make: impl Fn() -> P) {
    let calls = [
        ("membarrier", libc::SYS_membarrier),
        ("sched_yield", libc::SYS_sched_yield),
        ("futex", libc::SYS_futex),
    ];
    // It has used what the system has then.
    let there = Errands::new();
    waits(&make, &there, true);
    there.end();
    sandbox::each_refused(
        &calls,
        LONG,
        || (),
        |name, (), begin| {
            let there = Errands::new();
            there.run(|| ());
            begin();
            waits(&make, &there, name != "futex");
        },
    );
}

/// Signals each thread every millisecond: no wait ends early for that, late, or in another way.
pub fn t25_signals<P: Waits>(make: impl Fn() -> P) {
    let signals = sandbox::signalled(|| {
        let there = Errands::new();
        // A busy machine may send few of them in one round.
        for _ in 0..8 {
            waits(&make, &there, true);
        }
        there.end();
    });
    assert!(signals > 20, "{signals} signals: the trial showed nothing");
}
