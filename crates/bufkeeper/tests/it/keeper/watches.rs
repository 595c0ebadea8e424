//! Which pools a keeper has: each once, and none that ended long ago.

use super::*;

/// A pool that has ended. The clones are the weak handles that somebody keeps.
#[derive(Clone)]
struct Ended(Arc<()>);

impl WeakPool for Ended {
    fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        false
    }
}

impl Watch for Ended {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(self.clone())
    }
}

/// The most weak handles of ended pools that are kept beside `live` pools.
const fn most_ended(live: usize) -> usize {
    2 * live + 8
}

#[test]
fn a_handle_that_nobody_reads_keeps_no_ended_pools() {
    const LIVE: usize = 20;
    let keeper = keeper();
    let handle = keeper.handle();
    let live = [(); LIVE].map(|()| Arc::new(Fake::default()));
    let ended = Ended(Arc::new(()));
    for watched in 0..10_000 {
        if let Some(pool) = live.get(watched / 100) {
            handle.watch(pool);
        }
        handle.watch(&ended);
        let kept = Arc::strong_count(&ended.0) - 1;
        assert!(kept <= most_ended(LIVE), "{kept} ended pools are kept after {watched}");
    }
    let mut keeper = keeper;
    keeper.tick(Instant::now());
    assert_eq!(keeper.watched(), LIVE);
    live.iter().for_each(|pool| assert_eq!(pool.looks(), 1));
    assert_eq!(Arc::strong_count(&ended.0), 1);
}

#[test]
fn a_keeper_that_nobody_reads_keeps_no_ended_pools() {
    let ended = Ended(Arc::new(()));
    let mut keeper = keeper();
    for watched in 0..1000 {
        keeper = keeper.watch(&ended);
        let kept = Arc::strong_count(&ended.0) - 1;
        assert!(kept <= most_ended(0), "{kept} ended pools are kept after {watched}");
    }
}

#[test]
fn a_pool_is_watched_once() {
    let pool = Arc::new(Fake::default());
    let mut keeper = keeper().watch(&pool).watch(&pool);
    assert_eq!(keeper.watched(), 1);
    let handle = keeper.handle();
    for _ in 0..3 {
        handle.watch(&Arc::clone(&pool));
        handle.watch(&pool);
        keeper.tick(Instant::now());
        assert_eq!(keeper.watched(), 1, "{} looks", pool.looks());
    }
}

/// Pools without a size have no address of their own.
#[test]
fn pools_without_size_are_each_watched() {
    struct Nothing;
    impl Trim for &Nothing {
        fn trim(&mut self) {}
        fn stats(&self) -> Option<PoolStats> {
            None
        }
    }
    let pools = [(); 8].map(|()| Arc::new(Nothing));
    let keeper = pools.iter().fold(keeper(), |keeper, pool| keeper.watch(pool));
    assert_eq!(keeper.watched(), pools.len());
}
