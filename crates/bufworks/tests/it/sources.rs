//! Pools over memory of a source that panics: that is nobody's matter but the source's (T22).

#![allow(clippy::disallowed_methods, reason = "a source of memory allocates")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use bufkit::orphan;
use bufworks::bufcore::{MemoryProvider, Provided};
use bufworks::ring::RingPool;
use bufworks::slot::SlotPool;
use bufworks::{Buf, BufferPool, Lease, NoFallback, Region, RegionError};
use testkit::process::alone;

const LIMIT: Duration = Duration::from_secs(60);
const BYTES: usize = 64 << 10;

/// Panics when it gets memory back, or when it is dropped.
struct Panics {
    out: Arc<AtomicUsize>,
    when_dropped: bool,
}

// SAFETY: what the allocator returns is valid until it is freed, for nobody else, and stays.
unsafe impl MemoryProvider for Panics {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        // SAFETY: a region has at least one byte.
        let start = NonNull::new(unsafe { alloc(layout) })
            .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
        // ORDER: SeqCst, for ease.
        self.out.fetch_add(layout.size(), SeqCst);
        Ok(Provided { start, is_zeroed: false })
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // ORDER: SeqCst, for ease.
        self.out.fetch_sub(layout.size(), SeqCst);
        // SAFETY: from `allocate`, with this layout, and given back once.
        unsafe { dealloc(start.as_ptr(), layout) };
        assert!(self.when_dropped, "a source panics");
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(!self.when_dropped, "a source panics when it is dropped");
    }
}

/// Lets pools end with a buffer out, and then drops the buffer, in each way that a buffer can go.
fn late_releases<P: BufferPool>(build: fn(Region) -> P, when_dropped: bool)
where
    P::Lease: Lease,
{
    let out = Arc::new(AtomicUsize::new(0));
    let left = || {
        let source = Panics { out: Arc::clone(&out), when_dropped };
        let mut pool = build(Region::from_provider(source, BYTES, 64).expect("room"));
        let buf = pool.acquire(1000).expect("room");
        drop(pool);
        assert_eq!(orphan::pending(), 1);
        buf
    };
    let all_gone = |how| {
        // ORDER: SeqCst, for ease.
        assert_eq!((orphan::pending(), out.load(SeqCst)), (0, 0), "{how}");
    };
    let buf = left();
    catch_unwind(AssertUnwindSafe(|| drop(buf))).expect("a release does not panic");
    all_gone("here");
    let buf = left();
    thread::spawn(|| drop(buf)).join().expect("a release does not panic");
    all_gone("elsewhere");
    let buf = left();
    let unwinds = catch_unwind(AssertUnwindSafe(|| {
        let _buf = buf;
        panic!("a consumer panics");
    }));
    assert!(unwinds.is_err());
    all_gone("while the thread unwinds");
    at_the_end_of_a_thread(left());
    all_gone("at the end of a thread");

    // A pool of the heap goes as ever.
    let mut pool = build(Region::heap(BYTES, 64).expect("room"));
    let buf = pool.acquire(1000).expect("room");
    drop(pool);
    drop(buf);
    all_gone("of another pool");
}

/// A thread ends with the buffer in a variable of its own. A panic there would end the process.
fn at_the_end_of_a_thread<L: Lease>(buf: Buf<L>) {
    thread_local! {
        static KEPT: RefCell<Option<Box<dyn Send>>> = const { RefCell::new(None) };
    }
    let keep = || KEPT.with(|kept| *kept.borrow_mut() = Some(Box::new(buf)));
    thread::spawn(keep).join().expect("a thread ends");
}

#[test]
fn t22_sources_that_panic() {
    alone(module_path!(), "t22_sources_that_panic", LIMIT, || {
        for when_dropped in [false, true] {
            late_releases(
                |region| {
                    SlotPool::builder().slots(8).build_in(region, NoFallback).expect("settings are right")
                },
                when_dropped,
            );
            late_releases(
                |region| RingPool::builder().build_in(region).expect("settings are right"),
                when_dropped,
            );
        }
    });
}

/// Without buffers out, a panic goes to whoever drops the pool.
#[test]
fn t22_a_pool_that_gives_its_memory_back_itself() {
    let out = Arc::new(AtomicUsize::new(0));
    for when_dropped in [false, true] {
        let source = Panics { out: Arc::clone(&out), when_dropped };
        let region = Region::from_provider(source, BYTES, 64).expect("room");
        let mut pool = SlotPool::builder().slots(8).build_in(region, NoFallback).expect("settings are right");
        drop(pool.acquire(1000).expect("room"));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(pool))).is_err());
        // ORDER: SeqCst, for ease.
        assert_eq!(out.load(SeqCst), 0);
    }
}
