//! Which pools a keeper has: each once.

use super::*;

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
