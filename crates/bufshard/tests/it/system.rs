//! T25: a system that is hostile: calls that are refused after the start.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use bufshard::ShardPool;
use bufshard::bufcore::AcquireError;
use testkit::errands::Errands;
use testkit::process::{ThreadTimer, alone, thread_sleeps};
use testkit::sandbox;
use testkit::tasks::{block_on, counting, poll};

const LIMIT: Duration = Duration::from_secs(60);
const BUDGET: usize = 1 << 20;

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

/// `membarrier` is refused after the pool was used by several threads: waits sleep, and are served;
/// trims free; nothing else changes.
#[test]
fn t25_no_fence_after_the_start() {
    alone(module_path!(), "t25_no_fence_after_the_start", LIMIT, || {
        let pool = pool();
        let (barrier, over) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (theirs, there, last) = (pool.clone(), Arc::clone(&barrier), Arc::clone(&over));
        let other = thread::spawn(move || {
            drop([(); 4].map(|()| theirs.acquire(100_000).expect("room")));
            there.wait();
            there.wait();
            // It uses the pool once more, and is idle from then on.
            drop(theirs.acquire(1000));
            there.wait();
            last.wait();
        });
        barrier.wait();
        assert!(pool.stats().reserved_bytes > 400_000, "idle there");
        if !sandbox::refuse_fences() {
            barrier.wait();
            barrier.wait();
            over.wait();
            return other.join().expect("the thread ends well");
        }
        // A future that waits for what that thread has, and for a buffer of this one.
        let held = pool.acquire(300_000).expect("room");
        let (wakes, waker) = counting();
        let mut large = Box::pin(pool.acquire_async(900_000));
        let started = Instant::now();
        let mut polls = 0;
        let mut seen = usize::MAX;
        while started.elapsed() < Duration::from_millis(200) {
            if wakes.count() != seen {
                seen = wakes.count();
                polls += 1;
                assert!(poll(large.as_mut(), &waker).is_pending(), "there is no room");
            } else {
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(polls < 300, "{polls} polls: it wakes itself");
        // That thread comes along, and makes room.
        drop(held);
        barrier.wait();
        barrier.wait();
        let buf = block_on(large, LIMIT / 4).expect("it is served").expect("room");
        drop(buf);
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "nobody uses any");
        // A new pool knows from the start.
        let new = ShardPool::new().expect("settings are right");
        drop(new.acquire(1000));
        new.trim();
        assert_eq!(new.stats().reserved_bytes, 0, "in a new pool");
        over.wait();
        other.join().expect("the thread ends well");
        drop(pool);
    });
}

/// Threads acquire, release and wait while others trim, and the fence is refused in the midst of
/// it.
#[test]
fn t25_no_fence_amid_traffic() {
    alone(module_path!(), "t25_no_fence_amid_traffic", LIMIT, || {
        let pool = pool();
        let over = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new([const { AtomicUsize::new(0) }; 4]);
        let threads: Vec<_> = (0..4_u8)
            .map(|index| {
                let (pool, over, rounds) = (pool.clone(), Arc::clone(&over), Arc::clone(&rounds));
                thread::spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(u64::from(index));
                    let mut served = 0;
                    // ORDER: SeqCst, for ease.
                    while !over.load(SeqCst) {
                        let bytes = rng.usize(1..300_000);
                        let mut buf = match rng.u8(..3) {
                            0 => pool.acquire_timeout(bytes, LIMIT).expect("room in time"),
                            1 => block_on(pool.acquire_async(bytes), LIMIT).expect("served").expect("room"),
                            _ => match pool.acquire(bytes) {
                                Ok(buf) => buf,
                                Err(_) => continue,
                            },
                        };
                        let len = bytes.min(5000);
                        buf.resize(len, index).expect("asked for");
                        thread::yield_now();
                        assert!(buf.iter().all(|&byte| byte == index), "the bytes are its own");
                        if rng.u8(..) == 0 {
                            pool.trim();
                        }
                        served += 1;
                        // ORDER: Relaxed: a count, and no fence that the pool might lack.
                        rounds[usize::from(index)].store(served, Relaxed);
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        let _ = sandbox::refuse_fences();
        thread::sleep(Duration::from_millis(400));
        // ORDER: Relaxed: counts.
        while rounds.iter().any(|rounds| rounds.load(Relaxed) <= 10) {
            thread::sleep(Duration::from_millis(1));
        }
        // ORDER: SeqCst, for ease.
        over.store(true, SeqCst);
        threads.into_iter().for_each(|thread| thread.join().expect("all are served"));
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0);
    });
}

/// Requests time out when they should, and are served when a buffer comes back, as a thread and as a
/// task. They sleep until then, unless the system refuses that: then they do not `sleep`.
fn waits(there: &Errands, sleeps: bool) {
    const HELD: usize = 900_000;
    const WANTED: usize = 800_000;
    const SHORT: Duration = Duration::from_millis(25);
    let pool = pool();
    let held = || pool.acquire(HELD).expect("room");
    let out = held();
    let has_slept = |_| {
        let (began, timer, before) = (Instant::now(), ThreadTimer::start(), thread_sleeps());
        let refused = pool.acquire_timeout(WANTED, SHORT).map(drop);
        let (took, worked) = (began.elapsed(), timer.elapsed());
        assert!(matches!(refused, Err(AcquireError::Exhausted { .. })), "{refused:?}");
        assert!((SHORT..LIMIT / 4).contains(&took), "{took:?} of {SHORT:?}");
        thread_sleeps() > before && worked < SHORT / 6
    };
    // On a busy machine the time may be over before the thread had the processor.
    assert!((0..8).any(has_slept) || !sleeps, "it does not sleep");
    let release = |out| {
        there.start(move || {
            thread::sleep(SHORT / 5);
            drop(out);
        })
    };
    let released = release(out);
    drop(pool.acquire_timeout(WANTED, LIMIT / 2).expect("it comes back"));
    released.wait();
    let released = release(held());
    drop(block_on(pool.acquire_async(WANTED), LIMIT / 2).expect("in time").expect("it comes back"));
    released.wait();
    assert!(pool.acquire(WANTED).is_ok());
}

#[test]
fn t25_refused_calls() {
    let calls = [
        ("membarrier", libc::SYS_membarrier),
        ("sched_yield", libc::SYS_sched_yield),
        ("futex", libc::SYS_futex),
    ];
    let started = || {
        let there = Errands::new();
        there.run(|| ());
        there
    };
    alone(module_path!(), "t25_refused_calls", 2 * LIMIT, || {
        // It has used what the system has then.
        waits(&started(), true);
        sandbox::each_refused(
            &calls,
            LIMIT / 2,
            || (),
            |name, (), begin| {
                let there = started();
                begin();
                waits(&there, name != "futex");
            },
        );
    });
}

/// Each thread gets a signal every millisecond: no wait ends early for that, or late.
#[test]
fn t25_signals() {
    alone(module_path!(), "t25_signals", LIMIT, || {
        let there = Errands::new();
        sandbox::signalled(50, || waits(&there, true));
        there.end();
    });
}
