//! Forked children that exit, as programs do, with the destructors of their thread.

use std::cell::RefCell;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bufworks::PerThread;
use bufworks::slot::SlotPool;
use testkit::process::alone;
use testkit::sandbox::{Ended, forked};

const LIMIT: Duration = Duration::from_secs(60);

static MADE: AtomicUsize = AtomicUsize::new(0);

/// What the thread has last.
struct Last {
    pool: PerThread<SlotPool>,
    parent: u32,
}

impl Drop for Last {
    fn drop(&mut self) {
        if process::id() != self.parent {
            drop(self.pool.acquire(100));
            if MADE.load(Relaxed) == 1 {
                process::abort(); // an idle pool served: that of the thread
            }
        }
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// A child leaves its thread's pool where it is. To return it takes a lock, which another thread
/// may have had when the process forked.
#[test]
fn children_return_no_pools() {
    alone(module_path!(), "children_return_no_pools", LIMIT, || {
        let make = || {
            MADE.fetch_add(1, Relaxed);
            SlotPool::new(4096, 8)
        };
        let pool = PerThread::new(make).unwrap();
        // Before the thread has a pool: it is dropped after that.
        LAST.set(Some(Last { pool: pool.clone(), parent: process::id() }));
        drop(pool.acquire(100).unwrap());
        assert_eq!(forked(LIMIT, || process::exit(3)), Ended::With(3));
        assert_eq!(MADE.load(Relaxed), 1);
    });
}
