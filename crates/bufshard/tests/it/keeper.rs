//! The keeper over this pool: idle memory goes, what comes and goes stays, and the end of
//! pools and threads does not disturb it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use bufshard::{Keeper, PressureSource, ShardPool, Watch};
#[cfg(target_os = "linux")]
use testkit::process::{alone, resident_bytes, steady_allocator};
use testkit::trials::keeper::{self, AGE, burst, keeper, look, wait_until};

const MIB: usize = 1 << 20;
#[cfg(target_os = "linux")]
const LIMIT: Duration = Duration::from_secs(120);

fn pool() -> ShardPool {
    ShardPool::new().expect("settings are right")
}

fn reserved(pool: &ShardPool) -> usize {
    pool.stats().reserved_bytes
}

#[test]
fn a_burst_goes_within_two_looks() {
    let pool = pool();
    let mut keeper = keeper().watch(&pool);
    look(&mut keeper);
    // Of the first, little is kept.
    burst(&pool, 64, MIB);
    burst(&pool, 64, MIB);
    assert!(reserved(&pool) > 60 * MIB);
    look(&mut keeper);
    look(&mut keeper);
    assert_eq!(reserved(&pool), 0);
}

/// The sizes change from phase to phase. In each, the buffers stay that come and go, and those of
/// the phase before are gone after two looks.
#[test]
fn phases() {
    let pool = pool();
    let mut keeper = keeper().watch(&pool);
    for (count, bytes) in [(5, MIB), (20, 1500), (1, 300_000), (64, 64), (3, 5 * MIB)] {
        burst(&pool, count, bytes);
        look(&mut keeper);
        burst(&pool, count, bytes);
        look(&mut keeper);
        burst(&pool, count, bytes);
        let held = reserved(&pool);
        let block = bytes + bytes / 4 + 256;
        assert!(held <= count * block, "{held} bytes are held for {count} of {bytes}");
        for _ in 0..5 {
            look(&mut keeper);
            let now = reserved(&pool);
            // A page or two that lie between serve other sizes.
            assert!(now.abs_diff(held) <= 64 << 10, "{count} of {bytes} are in use: {now}, {held}");
            burst(&pool, count, bytes);
            let now = reserved(&pool);
            assert!(now.abs_diff(held) <= 64 << 10, "{count} of {bytes} were allocated again: {now}, {held}");
        }
    }
}

/// Threads that do nothing keep nothing; the one that works keeps what it uses.
#[test]
fn idle_threads_keep_nothing() {
    let pool = pool();
    let mut keeper = keeper().watch(&pool);
    let (start, over) = (Arc::new(Barrier::new(9)), Arc::new(Barrier::new(9)));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (pool, start, over) = (pool.clone(), Arc::clone(&start), Arc::clone(&over));
            thread::spawn(move || {
                burst(&pool, 4, MIB);
                start.wait();
                over.wait();
            })
        })
        .collect();
    start.wait();
    drop(pool.acquire(1500));
    let before = reserved(&pool);
    assert!(before > 8 * 2 * MIB, "{before}");
    look(&mut keeper);
    drop(pool.acquire(1500));
    look(&mut keeper);
    drop(pool.acquire(1500));
    look(&mut keeper);
    let after = reserved(&pool);
    assert!((1500..=8192).contains(&after), "{after} bytes are held for one thread");
    over.wait();
    threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
}

/// One line, and the memory of a burst was returned to the system.
#[cfg(target_os = "linux")]
#[test]
fn resident_memory_after_a_burst() {
    alone(module_path!(), "resident_memory_after_a_burst", LIMIT, || {
        steady_allocator();
        let pool = pool();
        let _keeper = Keeper::new().watch(&pool).spawn().expect("a thread starts");
        let before = resident_bytes();
        let burst = || {
            let mut bufs: Vec<_> = (0..256).map(|_| pool.acquire_zeroed(MIB).expect("room")).collect();
            bufs.iter_mut().for_each(|buf| buf.fill(1));
            drop(bufs);
        };
        // Of the first, little is kept. On a busy machine the keeper may have looked by the time that
        // this thread does.
        let is_kept = |_| {
            burst();
            burst();
            resident_bytes() > before + 30 * MIB
        };
        assert!((0..8).any(is_kept), "nothing was left for it");
        let ended = Instant::now();
        // Code that runs for the first time is resident too, more of it where libraries are linked
        // statically.
        wait_until("the memory stays", || resident_bytes() < before + 2 * MIB);
        // Two looks, 0.4 s apart, and the time that this machine takes.
        assert!(ended.elapsed() < Duration::from_secs(10), "{:?}", ended.elapsed());
    });
}

/// Under pressure, what is idle goes at once, used or not.
#[test]
fn pressure() {
    let root = std::env::temp_dir().join(format!("bufshard-pressure-{}", std::process::id()));
    let file = root.join("proc/pressure/memory");
    std::fs::create_dir_all(root.join("proc/pressure")).expect("there is room");
    std::fs::write(&file, "some avg10=0.00\nfull avg10=0.00\n").expect("there is room");
    let pool = pool();
    let mut keeper = Keeper::new().purge_delay(AGE).pressure(PressureSource::under(&root)).watch(&pool);
    for _ in 0..4 {
        burst(&pool, 4, MIB);
        look(&mut keeper);
    }
    assert!(reserved(&pool) > 2 * MIB, "they come and go");
    std::fs::write(&file, "some avg10=90.00\nfull avg10=50.00\n").expect("there is room");
    let held = pool.acquire(100_000).expect("room");
    burst(&pool, 4, MIB);
    look(&mut keeper);
    assert!((100_000..200_000).contains(&reserved(&pool)), "only what is out");
    drop(held);
    std::fs::remove_dir_all(root).expect("it is the test's own");
}

/// A pool that was empty for long wakes the keeper when it is used.
#[test]
fn it_wakes_for_the_next_burst() {
    let pool = pool();
    let running = keeper().watch(&pool).spawn().expect("a thread starts");
    for what in [1, 2, 3] {
        burst(&pool, 40, MIB);
        wait_until("the memory stays", || reserved(&pool) == 0);
        // It looks ever more rarely meanwhile, up to a minute.
        thread::sleep(AGE * 15 * what);
    }
    drop(running);
}

/// Each way to a new buffer wakes it.
#[test]
fn every_growth_rings() {
    let growths: [fn(&ShardPool); 4] = [
        |pool| drop(pool.acquire(1500)),
        |pool| drop(pool.acquire_zeroed(1500)),
        |pool| drop(pool.acquire_timeout(1500, Duration::from_secs(1))),
        |pool| assert_eq!(pool.preallocate(2, 1500), Ok(2)),
    ];
    for growth in growths {
        let pool = pool();
        let (wakes, waker) = testkit::tasks::counting();
        assert!(bufshard::Trim::wake_when_grown(&pool, &waker));
        assert_eq!(wakes.count(), 0);
        growth(&pool);
        assert_eq!(wakes.count(), 1);
        growth(&pool);
        assert_eq!(wakes.count(), 1, "once");
    }
}

#[test]
fn wakers_are_users_code() {
    let pool = pool();
    keeper::wakers_are_users_code(&pool);
    pool.trim();
    assert_eq!(reserved(&pool), 0, "nothing was lost");
}

/// A pool ends when the program drops it, whatever a keeper does with it at that moment.
#[test]
fn it_keeps_no_pool() {
    let pool = pool();
    let weak = pool.downgrade();
    let mut keeper = keeper().watch(&pool);
    burst(&pool, 20, MIB);
    look(&mut keeper);
    let out = pool.acquire(5000).expect("room");
    drop(pool);
    assert!(!weak.with(&mut |_| panic!("the pool has ended")));
    look(&mut keeper);
    assert_eq!(keeper.watched(), 0);
    assert_eq!(out.capacity(), 5000);
}

/// Pools come and go, and threads that use them, while the keeper looks all the time.
#[test]
fn pools_and_threads_end_amid_looks() {
    let running = Arc::new(keeper().spawn().expect("a thread starts"));
    let rounds = testkit::trials::scaled(4000).clamp(20, 400);
    let threads: Vec<_> = (0..4_u64)
        .map(|seed| {
            let running = Arc::clone(&running);
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..rounds {
                    let pool = pool();
                    running.watch(&pool);
                    let (send, receive) = mpsc::channel();
                    let theirs = pool.clone();
                    let other = thread::spawn(move || {
                        for buf in receive {
                            drop::<bufshard::ShardBuf>(buf);
                            drop(theirs.acquire(1500));
                        }
                    });
                    for _ in 0..rng.usize(1..40) {
                        let mut buf = pool.acquire(rng.usize(1..200_000)).expect("room");
                        buf.resize(buf.capacity().min(100), 7).expect("there is room");
                        send.send(buf).expect("it listens");
                    }
                    if rng.bool() {
                        thread::sleep(Duration::from_micros(rng.u64(..3000)));
                    }
                    drop((pool, send));
                    other.join().expect("it ends well");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    drop(running);
}

/// Traffic all the time: no buffer is lost, and none is changed by another.
#[test]
fn traffic_amid_looks() {
    let pool = pool();
    let running = keeper().watch(&pool).watch(&pool).spawn().expect("a thread starts");
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3_u8)
        .map(|index| {
            let (pool, over) = (pool.clone(), Arc::clone(&over));
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(u64::from(index));
                // ORDER: SeqCst, for ease.
                while !over.load(SeqCst) {
                    let bytes = rng.usize(1..20_000);
                    let mut bufs: Vec<_> =
                        (0..rng.usize(1..30)).map(|_| pool.acquire_zeroed(bytes).expect("room")).collect();
                    bufs.iter_mut().for_each(|buf| buf.fill(index));
                    thread::yield_now();
                    assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == index)), "its own bytes");
                }
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    // ORDER: SeqCst, for ease.
    over.store(true, SeqCst);
    threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    wait_until("memory stays", || reserved(&pool) == 0);
    drop(running);
}

#[cfg(all(unix, not(miri)))]
#[test]
fn t25_forked_children_exit() {
    testkit::process::alone(module_path!(), "t25_forked_children_exit", Duration::from_secs(120), || {
        keeper::t25_forked_children_exit(&pool());
    });
}
