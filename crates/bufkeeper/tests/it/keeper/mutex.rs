//! Pools that are used through `&mut`, in a lock.

use super::*;

/// A pool that is used through `&mut`: trimmed when its lock is free, and never waited for.
#[test]
fn a_pool_in_a_mutex() {
    struct Counted(usize);
    impl Trim for Counted {
        fn trim(&mut self) {
            self.0 += 1000;
        }

        fn trim_idle(&mut self, _: Duration) {
            self.0 += 1;
        }

        fn stats(&self) -> Option<PoolStats> {
            let mut stats = PoolStats::default();
            (stats.reserved_bytes, stats.idle_bytes) = (10, 5);
            Some(stats)
        }

        fn uses(&self) -> usize {
            7
        }
    }
    let told = |mut pool: &Mutex<Counted>, trims: bool| {
        if trims {
            pool.trim();
        }
        (pool.stats().map(|stats| (stats.reserved_bytes, stats.idle_bytes)), pool.uses())
    };
    let pool = Arc::new(Mutex::new(Counted(0)));
    let mut keeper = keeper().watch(&pool);
    let now = Instant::now();
    keeper.tick(now);
    assert_eq!(pool.lock().expect("nothing panics").0, 1);
    assert_eq!(told(&pool, false), (Some((10, 5)), 7));
    let held = pool.lock().expect("nothing panics");
    keeper.tick(now + AGE * 20);
    assert_eq!((told(&pool, true), held.0), ((None, 0), 1));
    drop(held);
    let theirs = Arc::clone(&pool);
    let panicked = thread::spawn(move || {
        let _held = theirs.lock();
        panic!("with the lock");
    });
    assert!(panicked.join().is_err() && pool.is_poisoned());
    keeper.tick(now + AGE * 40);
    told(&pool, true);
    let count = pool.lock().map_or_else(|poisoned| poisoned.into_inner().0, |pool| pool.0);
    assert_eq!((count, keeper.watched()), (1002, 1));
    drop(pool);
    keeper.tick(now + AGE * 60);
    assert_eq!(keeper.watched(), 0);
}
