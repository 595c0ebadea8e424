//! Which pools a monitor has: each once under a name, and none that ended long ago.

use std::sync::{Arc, Mutex, Weak};

use bufworks::any::AnyBuilder;
use bufworks::monitor::Monitor;
use bufworks::shard::ShardPool;
use bufworks::slot::SlotPool;
use bufworks::{Keeper, Trim, Watch, WeakPool};

use super::{Says, numbers};

/// A pool that lives as long as its `Arc`. The clones are the weak handles that somebody keeps.
#[derive(Clone)]
struct Counted {
    pool: Weak<Says>,
    _kept: Arc<()>,
}

impl WeakPool for Counted {
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        let Some(pool) = self.pool.upgrade() else { return false };
        look(&mut &*pool);
        true
    }
}

impl Watch for Counted {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(self.clone())
    }
}

#[test]
fn a_monitor_that_nobody_reads_keeps_no_ended_pools() {
    const LIVE: usize = 20;
    let (monitor, kept) = (Monitor::new(), Arc::new(()));
    let live = [(); LIVE].map(|()| Arc::new(Says::new(numbers(0))));
    for watched in 0..10_000 {
        if let Some(pool) = live.get(watched / 100) {
            monitor.watch("live", pool);
        }
        let pool = Arc::new(Says::new(numbers(0)));
        monitor.watch("ended", &Counted { pool: Arc::downgrade(&pool), _kept: Arc::clone(&kept) });
        let kept = Arc::strong_count(&kept) - 1;
        assert!(kept <= 2 * LIVE + 8, "{kept} ended pools are kept after {watched}");
    }
    let readings = monitor.read();
    assert_eq!((readings.len(), readings[0].pools), (1, LIVE));
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// Counters that were read go on, also where nobody reads when their pools end.
#[test]
fn ended_pools_leave_their_counters() {
    let monitor = Monitor::new();
    let pool = Arc::new(Says::new(numbers(0)));
    monitor.watch("packets", &pool);
    assert_eq!(monitor.read()[0].stats.acquired, 1);
    drop(pool);
    let others = [(); 100].map(|()| {
        let pool = Arc::new(Says::new(numbers(0)));
        monitor.watch("packets", &pool);
        pool
    });
    let reading = &monitor.read()[0];
    assert_eq!((reading.pools, reading.stats.acquired), (others.len(), 1 + others.len() as u64));
}

#[test]
fn a_pool_counts_once_under_a_name() {
    let (monitor, pool) = (Monitor::new(), Arc::new(Says::new(numbers(0))));
    for _ in 0..3 {
        monitor.watch("packets", &pool);
        monitor.watch("packets", &Arc::clone(&pool));
        let packets = &monitor.read()[0];
        assert_eq!((packets.pools, packets.stats.acquired), (1, 1));
    }
    // Two names are two series, and each has its numbers.
    monitor.watch("frames", &pool);
    let pools: Vec<_> = monitor.read().iter().map(|reading| reading.pools).collect();
    assert_eq!(pools, [1, 1]);
}

#[test]
fn clones_of_a_pool_count_once() {
    let (monitor, pool) = (Monitor::new(), ShardPool::new().expect("settings are right"));
    let clone = pool.clone();
    monitor.watch("packets", &pool);
    monitor.watch("packets", &clone);
    assert_eq!(monitor.read()[0].pools, 1);
    assert_eq!(Keeper::new().watch(&pool).watch(&clone).watched(), 1);
    drop(pool);
    assert_eq!(monitor.read()[0].pools, 1, "the other handle keeps it");
    drop(clone);
    assert!(monitor.read().is_empty());

    let any = || "shard".parse::<AnyBuilder>().expect("a builder").build().expect("settings are right");
    let pools = [any(), any()];
    pools.iter().chain(&pools).for_each(|pool| monitor.watch("any", pool));
    assert_eq!(monitor.read()[0].pools, 2);

    let pool = Arc::new(Mutex::new(SlotPool::new(4096, 2).expect("settings are right")));
    monitor.watch("frames", &pool);
    monitor.watch("frames", &Arc::clone(&pool));
    assert_eq!(monitor.read()[1].pools, 1);
}
