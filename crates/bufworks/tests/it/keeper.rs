//! A keeper over pools that were chosen at run time, and as a task of tokio.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "shard")]
use bufworks::Trim;
use bufworks::any::{AnyBuilder, AnyPool};
use bufworks::{Keeper, PressureSource};

const AGE: Duration = Duration::from_millis(10);

fn keeper() -> Keeper {
    Keeper::new().purge_delay(AGE).pressure(PressureSource::none())
}

/// Acquires and drops as many buffers at once.
fn burst(pool: &mut AnyPool, count: usize, bytes: usize) {
    drop((0..count).map(|_| pool.acquire(bytes).expect("there is room")).collect::<Vec<_>>());
}

/// A strategy that threads share has idle memory, is watched and loses it. The others are as they
/// were.
#[test]
fn every_strategy() {
    for name in AnyBuilder::NAMES {
        let mut pool = super::any::built(name);
        let is_shared = pool.share().is_some();
        let mut keeper = keeper().watch(&pool);
        // A bump pool does not take the shard that a thread carves: whole pages of 256 KiB and a
        // header.
        let carved = if *name == "bump" { 272 << 10 } else { 0 };
        for _ in 0..4 {
            burst(&mut pool, 8, 100_000);
            let idle = pool.stats().idle_bytes;
            assert!(!is_shared || idle > carved, "{name}: {idle} bytes are idle before they go");
            keeper.tick(Instant::now());
            thread::sleep(AGE);
        }
        assert_eq!(keeper.watched(), usize::from(is_shared), "{name}");
        let is_gone = || pool.stats().idle_bytes <= carved;
        // Where a pool counts no uses, the same burst again looks as if nothing changed: up to
        // eight ages from look to look.
        for _ in 0..100 {
            if !is_shared || is_gone() {
                break;
            }
            thread::sleep(AGE);
            keeper.tick(Instant::now());
        }
        assert!(!is_shared || is_gone(), "{name}: {} bytes are idle", pool.stats().idle_bytes);
        assert_eq!(keeper.watched(), usize::from(is_shared), "{name}");
        burst(&mut pool, 4, 1000);
        drop(pool);
        thread::sleep(AGE * 8);
        keeper.tick(Instant::now() + AGE * 100);
        assert_eq!(keeper.watched(), 0, "{name}: the pool has ended");
    }
}

/// A program that keeps the pool in a type of its own asks it as its strategy's pool is asked.
#[cfg(feature = "shard")]
#[test]
fn it_tells_what_its_strategy_tells() {
    let (wakes, waker) = testkit::tasks::counting();
    for name in AnyBuilder::NAMES {
        let mut pool = super::any::built(name);
        let (uses, woken) = (pool.uses(), wakes.count());
        let wakes_when_grown = pool.wake_when_grown(&waker);
        burst(&mut pool, 8, 100_000);
        assert_eq!(wakes.count() - woken, usize::from(wakes_when_grown), "{name}");
        if *name == "shard" {
            assert!(wakes_when_grown && pool.uses() != uses);
        }
        // And in a mutex, while nobody has the lock.
        let told = (pool.uses(), Some(pool.stats()));
        let pool = &Mutex::new(pool);
        assert_eq!((pool.uses(), pool.stats()), told, "{name}");
        assert_eq!(pool.wake_when_grown(&waker), wakes_when_grown, "{name}");
        let _held = pool.lock().expect("nothing panics");
        assert!(!pool.wake_when_grown(&waker) && pool.uses() == 0 && pool.stats().is_none(), "{name}");
    }
}

/// In a mutex any pool can be watched, also one that serves one thread at a time.
#[test]
fn every_strategy_in_a_mutex() {
    for name in AnyBuilder::NAMES {
        let pool = Arc::new(Mutex::new(super::any::built(name)));
        let mut keeper = keeper().watch(&pool);
        for _ in 0..4 {
            let mut held = pool.lock().expect("nothing panics");
            let kept = held.acquire(1000).expect("there is room");
            burst(&mut held, 4, 1000);
            drop(held);
            keeper.tick(Instant::now());
            thread::sleep(AGE);
            drop(kept);
        }
        assert_eq!(keeper.watched(), 1, "{name}");
        drop(pool);
        keeper.tick(Instant::now() + AGE * 100);
        assert_eq!(keeper.watched(), 0, "{name}: the pool has ended");
    }
}

#[cfg(feature = "shard")]
#[test]
fn trim_idle() {
    let mut pool = super::any::built("shard");
    burst(&mut pool, 4, 100_000);
    pool.trim_idle(Duration::from_secs(3600));
    assert!(pool.stats().idle_bytes > 100_000);
    pool.trim_idle(Duration::ZERO);
    pool.trim_idle(Duration::ZERO);
    assert_eq!(pool.stats().idle_bytes, 0);
}

/// One line in a program of tokio's.
#[cfg(feature = "shard")]
#[test]
fn as_a_task_of_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads start").block_on(async {
        let pool = bufworks::shard::ShardPool::new().expect("settings are right");
        let task = tokio::spawn(keeper().watch(&pool).run(tokio::time::sleep));
        for _ in 0..3 {
            drop([(); 40].map(|()| pool.acquire(1 << 20).expect("there is room")));
            let started = Instant::now();
            while pool.stats().reserved_bytes > 0 {
                assert!(started.elapsed() < Duration::from_secs(30), "the memory stays");
                tokio::time::sleep(AGE / 2).await;
            }
            // Until it sleeps for longer, and is woken.
            tokio::time::sleep(AGE * 40).await;
        }
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
    });
}
