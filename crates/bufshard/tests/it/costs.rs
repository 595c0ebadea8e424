//! What the pool costs as its surroundings grow.

use std::time::Duration;

#[test]
fn t26_late_releases() {
    // As little bookkeeping as a pool can have: there are very many.
    let make = |_buffers| {
        let builder = bufshard::ShardPool::builder().shards(1).largest_pooled(64);
        builder.build().expect("settings are right")
    };
    testkit::process::alone(module_path!(), "t26_late_releases", Duration::from_secs(600), || {
        testkit::trials::costs::t26_late_releases(make);
    });
}

#[test]
fn t26_an_end_costs_the_same_beside_kept_buffers() {
    let make = |_buffers| {
        let builder = bufshard::ShardPool::builder().shards(1).largest_pooled(64);
        builder.build().expect("settings are right")
    };
    let name = "t26_an_end_costs_the_same_beside_kept_buffers";
    testkit::process::alone(module_path!(), name, Duration::from_secs(600), || {
        testkit::trials::costs::t26_an_end_costs_the_same_beside_kept_buffers(make);
    });
}

/// A thread's bookkeeping is made in its memory: a copy on the stack would keep pages of each
/// thread's stack resident.
#[cfg(all(target_os = "linux", feature = "stats"))] // without, it is a page or two
#[test]
#[cfg_attr(debug_assertions, ignore = "debug builds copy")]
fn a_first_request_touches_few_pages_of_the_stack() {
    use std::sync::Barrier;
    use std::thread;

    const THREADS: usize = 200;

    // Resident bytes by which each thread adds to the process.
    fn each(work: impl Fn() + Sync) -> usize {
        let barrier = Barrier::new(THREADS + 1);
        thread::scope(|scope| {
            let before = testkit::process::resident_bytes();
            for _ in 0..THREADS {
                scope.spawn(|| {
                    work();
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            let after = testkit::process::resident_bytes();
            barrier.wait();
            after.saturating_sub(before) / THREADS
        })
    }

    let name = "a_first_request_touches_few_pages_of_the_stack";
    testkit::process::alone(module_path!(), name, Duration::from_secs(60), || {
        let pool = bufshard::ShardPool::new().expect("settings are right");
        let without = each(|| {});
        let with = each(|| drop(pool.acquire(16)));
        assert!(with < without + (25 << 10), "{with} bytes for each thread, and {without} without a pool");
    });
}
