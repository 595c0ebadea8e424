//! A pool for each thread: which pool serves whom, and when pools are made and dropped.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bufworks::bufcore::Buf;
use bufworks::ring::RingPool;
use bufworks::slot::SlotPool;
use bufworks::{
    AcquireError, BufferPool, ConfigError, HeapLease, HeapPool, NoFallback, PerThread, PoolStats,
};

type Slots = PerThread<SlotPool<NoFallback>>;

testkit::conformance! {
    name: slot,
    pool: PerThread<SlotPool> = || PerThread::new(|| SlotPool::new(1 << 20, 1000)).unwrap(),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    share: 20,
}

testkit::conformance! {
    name: ring,
    pool: PerThread<RingPool> = || PerThread::new(|| RingPool::new(1 << 20)).unwrap(),
    is_fallback: |_| false,
    rejects: true,
    share: 20,
}

testkit::conformance_by_reference! {
    name: heap,
    pool: PerThread<HeapPool> = || PerThread::new(|| Ok(HeapPool::new())).unwrap(),
}

fn slots() -> Result<SlotPool<NoFallback>, ConfigError> {
    SlotPool::builder().capacity(1 << 16).slots(8).build_with(NoFallback)
}

/// Makes slot pools of 8 slots, and counts them.
fn counted() -> (Slots, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let make = move || {
        // ORDER: Relaxed, as all here: threads are joined before it is read.
        count.fetch_add(1, Relaxed);
        slots()
    };
    (PerThread::new(make).expect("the settings are right"), made)
}

/// A thousand threads that come and go have as many pools as there were threads at once.
#[test]
fn pools_serve_again() {
    let (pool, made) = counted();
    for _ in 0..200 {
        let pool = pool.clone();
        thread::spawn(move || drop(pool.acquire(100).unwrap())).join().unwrap();
    }
    assert_eq!(made.load(Relaxed), 1, "one thread at a time");
    for _ in 0..100 {
        let together = Arc::new(Barrier::new(8));
        let threads = [0; 8].map(|_| {
            let (pool, together) = (pool.clone(), Arc::clone(&together));
            thread::spawn(move || {
                let _buf = pool.acquire(100).unwrap();
                together.wait();
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    assert_eq!(made.load(Relaxed), 8, "eight threads at a time");
    let of_one = slots().unwrap().stats().reserved_bytes;
    assert_eq!((pool.stats().in_use, pool.stats().reserved_bytes), (0, 8 * of_one));
}

/// Each thread is served by its own pool, which has 8 slots.
#[test]
fn each_thread_has_its_own() {
    let (pool, made) = counted();
    let other = pool.clone();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let bufs: Vec<_> = (0..8).map(|_| other.acquire(100).unwrap()).collect();
                assert!(matches!(other.acquire(100), Err(AcquireError::Exhausted { .. })));
                drop(bufs);
                assert!(other.acquire(100).is_ok());
            });
        }
        for _ in 0..8 {
            std::mem::forget(pool.acquire(100).unwrap());
        }
    });
    assert!((1..=4).contains(&made.load(Relaxed)));
    assert!(matches!(pool.acquire(100), Err(AcquireError::Exhausted { .. })));
    assert_eq!(pool.max_capacity(), slots().unwrap().max_capacity());
}

/// A buffer is there when its thread and all handles are gone, and a later thread has its memory.
#[test]
fn buffers_outlive_their_threads() {
    let (pool, made) = counted();
    let acquire = |pool: Slots| {
        thread::spawn(move || {
            let mut buf = pool.acquire(5000).unwrap();
            buf.extend_from_slice(&[7; 5000]).unwrap();
            buf
        })
    };
    let first = acquire(pool.clone()).join().unwrap();
    let bufs: Vec<_> = (0..7).map(|_| acquire(pool.clone()).join().unwrap()).collect();
    let full = pool.clone();
    let refused = thread::spawn(move || full.acquire(5000).is_err());
    assert!(refused.join().unwrap(), "one pool serves all of them");
    assert_eq!(first, [7; 5000]);
    drop(first);
    let again = acquire(pool.clone()).join().unwrap();
    assert_eq!((&again[..], made.load(Relaxed)), (&[7; 5000][..], 1));
    drop(pool);
    assert!(bufs.iter().all(|buf| *buf == [7; 5000]));
}

/// What a thread-local value acquires when it is dropped, before or after the pools of its thread.
struct Late {
    pool: Slots,
    result: Sender<Result<usize, AcquireError>>,
}

impl Drop for Late {
    fn drop(&mut self) {
        for _ in 0..2 {
            self.result.send(self.pool.acquire(100).map(|buf| buf.capacity())).unwrap();
        }
    }
}

thread_local! {
    static EARLY: RefCell<Option<Late>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

#[test]
fn threads_that_end_are_served() {
    for acquires in [false, true] {
        let (pool, made) = counted();
        let (result, results) = channel();
        let shared = pool.clone();
        let thread = thread::spawn(move || {
            // The one that comes first is dropped last.
            EARLY.set(Some(Late { pool: shared.clone(), result: result.clone() }));
            if acquires {
                shared.acquire(100).unwrap();
            }
            LATE.set(Some(Late { pool: shared, result }));
        });
        thread.join().unwrap();
        assert_eq!(results.iter().collect::<Vec<_>>(), [Ok(100); 4]);
        assert_eq!((made.load(Relaxed), pool.stats().in_use), (1, 0));
        let next = pool.clone();
        thread::spawn(move || drop(next.acquire(100).unwrap())).join().unwrap();
        assert_eq!(made.load(Relaxed), 1, "it serves the next thread");
    }
}

/// The sum of all pools, while their threads use them, and afterwards.
#[test]
fn numbers_add_up() {
    let (pool, _) = counted();
    let together = Barrier::new(4);
    let (kept, seen) = thread::scope(|scope| {
        for kept in 1..4 {
            let (pool, together) = (pool.clone(), &together);
            scope.spawn(move || {
                let bufs: Vec<_> = (0..kept).map(|_| pool.acquire(1000).unwrap()).collect();
                together.wait();
                together.wait();
                drop(bufs);
                assert!((0..10_000).all(|_| pool.acquire(1000).is_ok()));
            });
        }
        together.wait();
        let kept = pool.stats();
        together.wait();
        (kept, (0..1000).map(|_| pool.stats().acquired).collect::<Vec<_>>())
    });
    let stats = pool.stats();
    assert!(seen.is_sorted(), "a pool that is in use has its last numbers");
    assert_eq!((stats.reserved_bytes, stats.in_use), (3 * slots().unwrap().stats().reserved_bytes, 0));
    #[cfg(feature = "stats")]
    {
        assert_eq!((kept.acquired, kept.in_use, kept.in_use_bytes), (6, 6, 6000));
        assert_eq!((stats.acquired, stats.high_water), (30_006, 6));
    }
    let _ = kept;
}

thread_local! {
    /// Whether statistics acquire on this thread.
    static ACQUIRES: Cell<bool> = const { Cell::new(true) };
}

/// A pool of the user's that counts its drops, and calls back in for requests of some sizes.
struct Own {
    heap: HeapPool,
    drops: Arc<AtomicUsize>,
    back: Arc<OnceLock<PerThread<Self>>>,
}

impl BufferPool for Own {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        match (capacity, self.back.get()) {
            (2000.., Some(back)) => {
                assert!(back.stats().acquired < 100);
                back.acquire(capacity - 1000)
            }
            (1999, _) => panic!("on purpose"),
            _ => self.heap.acquire(capacity),
        }
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        if let Some(back) = self.back.get().filter(|_| ACQUIRES.get()) {
            drop(back.acquire(10).unwrap());
        }
        self.heap.stats()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Relaxed);
    }
}

fn own() -> (PerThread<Own>, Arc<AtomicUsize>, Arc<OnceLock<PerThread<Own>>>) {
    let (drops, back) = (Arc::<AtomicUsize>::default(), Arc::<OnceLock<_>>::default());
    let to_make = (Arc::clone(&drops), Arc::clone(&back));
    let make = move || {
        let (drops, back) = to_make.clone();
        Ok::<_, ConfigError>(Own { heap: HeapPool::new(), drops, back })
    };
    (PerThread::new(make).unwrap(), drops, back)
}

/// The last handle drops the pools of threads that live on.
#[test]
fn pools_end_with_the_handles() {
    let (pool, drops, _) = own();
    let together = Arc::new(Barrier::new(4));
    let threads = [0; 3].map(|_| {
        let (pool, together) = (pool.clone(), Arc::clone(&together));
        thread::spawn(move || {
            drop(pool.acquire(100).unwrap());
            drop(pool);
            together.wait();
            together.wait();
        })
    });
    together.wait();
    assert_eq!(drops.load(Relaxed), 0);
    drop(pool);
    let dropped = drops.load(Relaxed);
    together.wait();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(dropped, 3);
}

/// Handles of two kinds, used in turn, with others that come and go.
#[test]
fn each_handle_has_its_own() {
    let slots = PerThread::new(|| SlotPool::new(4096, 8)).unwrap();
    let (own, drops, _) = own();
    for round in 1..5 {
        assert_eq!(own.acquire(100).unwrap().capacity(), 100);
        assert_eq!(slots.acquire(100).unwrap().capacity(), 100);
        let other = || PerThread::new(|| Ok(HeapPool::new())).unwrap();
        let gone = other();
        (0..2).for_each(|_| assert_eq!(gone.acquire(round).unwrap().capacity(), round));
        drop(gone);
        // Frees what the thread had of it. The next ones may be where that was.
        assert_eq!(other().acquire(round).unwrap().capacity(), round);
        let next = [0; 4].map(|_| other());
        next.iter().for_each(|next| assert_eq!(next.acquire(round).unwrap().capacity(), round));
    }
    drop(own);
    assert_eq!(drops.load(Relaxed), 1);
    assert!(slots.acquire(100).is_ok());
}

/// Requests and statistics from within a request, and one that panics.
#[test]
fn pools_that_call_back_in() {
    let (pool, _, back) = own();
    drop(pool.acquire(100).unwrap());
    assert!(back.set(pool.clone()).is_ok());
    assert_eq!(pool.acquire(5500).unwrap().capacity(), 1500);
    assert_eq!(pool.stats().in_use, 0);
    let panics = std::panic::AssertUnwindSafe(|| pool.acquire(1999).map(drop));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(pool.acquire(100).unwrap().capacity(), 100);
}

/// Statistics that acquire, where the only pool is idle and looked at: another one is made, and these
/// two serve from then on.
#[test]
fn statistics_that_acquire() {
    let (pool, _, back) = own();
    assert!(back.set(pool.clone()).is_ok());
    for _ in 0..10 {
        assert_eq!(pool.stats().in_use, 0);
    }
    assert_eq!(format!("{pool:?}"), "PerThread { pools: 2, .. }");
}

/// The same while other threads look at the idle pools: no request is refused.
#[test]
fn statistics_that_acquire_are_served() {
    let (pool, _, back) = own();
    assert!(back.set(pool.clone()).is_ok());
    let (ended, together) = (AtomicBool::new(false), Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                ACQUIRES.set(false);
                together.wait();
                while !ended.load(Relaxed) {
                    let _ = pool.stats();
                }
            });
        }
        together.wait();
        // Where all have one processor, it is the others' for milliseconds each time that they look.
        let began = Instant::now();
        let is_long = || began.elapsed() > Duration::from_secs(2);
        let asks = || {
            (0..if cfg!(miri) { 5 } else { 500 }).take_while(|_| !is_long()).for_each(|_| _ = pool.stats())
        };
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(asks));
        ended.store(true, Relaxed);
        assert!(asked.is_ok());
    });
}

/// A pool whose statistics take long on a thread that is `SLOW`.
struct Slow {
    heap: HeapPool,
    acquired: u64,
    meets: Option<Arc<Barrier>>,
}

thread_local! {
    static SLOW: Cell<bool> = const { Cell::new(false) };
}

impl BufferPool for Slow {
    type Lease = HeapLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<HeapLease>, AcquireError> {
        self.acquired += 1;
        self.heap.acquire(capacity)
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        if let Some(meets) = self.meets.as_ref().filter(|_| SLOW.get()) {
            meets.wait();
            meets.wait();
        }
        let mut stats = PoolStats::default();
        stats.acquired = self.acquired;
        stats
    }
}

/// One looks at the first pool, and then for long at the second. What others saw of the first
/// meanwhile is newer.
#[test]
fn counters_do_not_go_back() {
    let meets = Arc::new(Barrier::new(2));
    let (given, is_first) = (Arc::clone(&meets), AtomicBool::new(true));
    let make = move || {
        let meets = (!is_first.swap(false, Relaxed)).then(|| Arc::clone(&given));
        Ok::<_, ConfigError>(Slow { heap: HeapPool::new(), acquired: 0, meets })
    };
    let pool = PerThread::new(make).unwrap();
    pool.acquire(1).unwrap();
    let other = pool.clone();
    thread::spawn(move || drop(other.acquire(1).unwrap())).join().unwrap();
    assert_eq!(pool.stats().acquired, 2);
    let looker = pool.clone();
    let slow = thread::spawn(move || {
        SLOW.set(true);
        looker.stats().acquired
    });
    meets.wait();
    pool.acquire(1).unwrap();
    assert_eq!(pool.stats().acquired, 3);
    meets.wait();
    assert_eq!(slow.join().unwrap(), 3);
}

/// A pool that cannot be made: at once for the first, and as an error of the request for later ones.
#[test]
fn pools_that_cannot_be_made() {
    assert!(PerThread::new(|| SlotPool::new(0, 8)).is_err());
    let is_first = AtomicUsize::new(1);
    let pool = PerThread::new(move || SlotPool::new(100, is_first.swap(0, Relaxed))).unwrap();
    let here = pool.acquire(10).unwrap();
    let other = pool.clone();
    let there = thread::spawn(move || other.acquire(10).map(drop)).join().unwrap();
    assert_eq!(there, Err(AcquireError::OutOfMemory { requested: 10 }));
    drop(here);
    assert!(pool.acquire(10).is_ok());
}

/// A buffer is tracked where the program acquired it.
#[cfg(feature = "track")]
#[test]
fn buffers_are_tracked_to_their_caller() {
    let (kept, lists) = channel();
    let make = move || {
        let pool = SlotPool::new(1 << 16, 8)?;
        Ok(Listed { pool, lists: kept.clone() })
    };
    let pool = PerThread::new(make).unwrap();
    let bufs = (pool.acquire(10).unwrap(), pool.acquire_zeroed(10).unwrap());
    drop(pool);
    let files: Vec<String> = lists.iter().flatten().collect();
    assert_eq!(files, [file!(), file!()]);
    drop(bufs);
}

/// Sends where its buffers were acquired when it is dropped.
#[cfg(feature = "track")]
struct Listed {
    pool: SlotPool,
    lists: Sender<Vec<String>>,
}

#[cfg(feature = "track")]
impl BufferPool for Listed {
    type Lease = <SlotPool as BufferPool>::Lease;

    #[track_caller]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        self.pool.acquire(capacity)
    }

    #[track_caller]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        self.pool.acquire_zeroed(len)
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

#[cfg(feature = "track")]
impl Drop for Listed {
    fn drop(&mut self) {
        let list = self.pool.outstanding();
        self.lists.send(list.iter().map(|one| one.location.file().to_owned()).collect()).unwrap();
    }
}
