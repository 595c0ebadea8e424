//! Pools that threads share by their clones: the end of a thread, and of the last handle.

use core::any::Any;
use core::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::thread;

use bufcore::{Buf, BufferPool, Lease, SplitLease};

use crate::model::Shadow;
use crate::pattern;
use crate::trials::scaled;

/// Makes a buffer of `len` bytes, all of them `byte`.
fn filled<P: BufferPool>(pool: &mut P, len: usize, byte: u8) -> Buf<P::Lease> {
    let mut buf = pool.acquire(len).expect("room");
    buf.resize(len, byte).expect("asked for");
    buf
}

fn is_all<L: Lease>(buf: &Buf<L>, byte: u8) -> bool {
    buf.iter().all(|&found| found == byte)
}

type Held<P> = Arc<Mutex<Vec<Buf<<P as BufferPool>::Lease>>>>;

/// Uses its pool when it is dropped, and then drops what it holds.
struct AtTheEnd<P: BufferPool<Lease: SplitLease>> {
    pool: P,
    held: Held<P>,
    report: Arc<Mutex<Vec<bool>>>,
}

impl<P: BufferPool<Lease: SplitLease>> Drop for AtTheEnd<P> {
    fn drop(&mut self) {
        let mut buf = filled(&mut self.pool, 100, 3);
        let held = self.held.lock().expect("nobody panics with it");
        let fine = held.len() == 1 && is_all(&buf, 3) && held.iter().all(|buf| is_all(buf, 9));
        drop(held);
        let part = buf.split_off(50);
        drop((buf, part));
        self.report.lock().expect("nobody panics with it").push(fine);
    }
}

thread_local! {
    static EARLY: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Checks that buffers are acquired and dropped by destructors of thread-locals, before the pool's
/// own and after them (T8).
pub fn at_a_threads_very_end<P>(make: fn() -> P)
where
    P: BufferPool<Lease: SplitLease> + Clone + Send + 'static,
{
    for pool_goes in [false, true] {
        let pool = make();
        let report = Arc::new(Mutex::new(Vec::new()));
        let (mut theirs, theirs_report) = (pool.clone(), Arc::clone(&report));
        let ending = thread::spawn(move || {
            let (early, late) = (Held::<P>::default(), Held::<P>::default());
            let at_the_end = |pool: &P, held: &Held<P>| -> Option<Box<dyn Any>> {
                let (held, report) = (Arc::clone(held), Arc::clone(&theirs_report));
                Some(Box::new(AtTheEnd { pool: pool.clone(), held, report }))
            };
            // Registered before the pool's, and after.
            EARLY.set(at_the_end(&theirs, &early));
            let buf = filled(&mut theirs, 50, 9);
            LATE.set(at_the_end(&theirs, &late));
            late.lock().expect("nobody panics with it").push(buf);
            early.lock().expect("nobody panics with it").push(filled(&mut theirs, 50, 9));
        });
        let pool = (!pool_goes).then_some(pool);
        ending.join().expect("the thread ends well");
        assert_eq!(*report.lock().expect("nobody panics with it"), [true, true]);
        if let Some(pool) = pool {
            assert_eq!(pool.stats().in_use, 0);
        }
    }
}

/// Checks that buffers of four threads on one pool never overlap and keep their bytes (T2, T14).
pub fn one_pool_for_all<P: BufferPool + Clone + Send + 'static>(make: fn() -> P) {
    let pool = make();
    let shadow = Shadow::new();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let (mut pool, shadow) = (pool.clone(), Arc::clone(&shadow));
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(index);
                let mut held = Vec::new();
                for _ in 0..scaled(100_000) {
                    let (bytes, seed) = (rng.usize(1..6000), rng.u64(..));
                    let mut buf = pool.acquire(bytes).expect("room");
                    let claim = shadow.claim(buf.as_ptr(), buf.capacity());
                    pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
                    buf.commit(bytes);
                    held.push((claim, buf, seed));
                    while held.len() > rng.usize(..12) {
                        let (claim, buf, seed) = held.swap_remove(rng.usize(..held.len()));
                        pattern::check(&buf, seed, 0);
                        drop(claim);
                        drop(buf);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the bytes are right"));
    assert_eq!(pool.stats().in_use, 0);
}

/// Writes and drops parts of one buffer on three threads, and writes the memory again (T4).
pub fn parts_elsewhere<P: BufferPool<Lease: SplitLease + 'static>>(make: fn() -> P) {
    let mut pool = make();
    for round in 0..scaled(20_000) as u64 {
        let mut buf = pool.acquire(300).expect("a small request");
        pattern::fill(&mut buf.spare_mut()[..300], round, 0);
        buf.commit(300);
        let threads = [buf.split_to(100), buf.split_to(100)].map(|mut part| {
            thread::spawn(move || {
                let seed = part[0];
                part.fill(!seed);
                assert!(is_all(&part, !seed));
            })
        });
        pattern::check(&buf, round, 200);
        drop(buf);
        let other = filled(&mut pool, 300, 1);
        threads.into_iter().for_each(|thread| thread.join().expect("the bytes are its own"));
        assert!(is_all(&other, 1));
    }
}

/// Ends threads while their buffers are out, and pools whose last handle ends on any of them, before
/// or after the buffers of all of them (T6).
pub fn threads_and_pools_end<P: BufferPool + Clone + Send + 'static>(make: fn() -> P) {
    for round in 0..scaled(20_000) {
        let pool = make();
        let threads = [0, 1, 2].map(|index| {
            let mut pool = pool.clone();
            thread::spawn(move || {
                let mut bufs: Vec<_> = (0..8).map(|_| filled(&mut pool, 500, index)).collect();
                // What is kept is dropped after the pool is gone, perhaps.
                let kept = bufs.split_off(round % 8);
                drop(pool);
                drop(kept);
                bufs
            })
        });
        if round % 2 == 0 {
            drop(pool);
        }
        for (index, thread) in (0..).zip(threads) {
            let bufs = thread.join().expect("the thread ends well");
            assert!(bufs.iter().all(|buf| is_all(buf, index)));
        }
    }
}
