//! Pools that threads share by their clones: the end of a thread, and of the last handle.

use core::any::Any;
use core::cell::RefCell;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use bufcore::{Buf, BufferPool, Lease, SplitLease};

/// A buffer of `len` bytes, all of them `byte`.
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

/// T8: buffers are acquired and dropped by destructors of thread-locals, before the pool's own and after them.
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

/// T6: the last handle may go on any thread, with buffers of all of them out.
pub fn the_last_handle_goes_anywhere<P: BufferPool + Clone + Send + 'static>(make: fn() -> P) {
    for round in 0..200 {
        let pool = make();
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..3_u8)
            .map(|index| {
                let (mut pool, barrier) = (pool.clone(), Arc::clone(&barrier));
                thread::spawn(move || {
                    let mut bufs: Vec<_> = (0..10).map(|_| filled(&mut pool, 1000, index)).collect();
                    let kept = bufs.split_off(round % 10);
                    barrier.wait();
                    drop(pool);
                    drop(bufs);
                    kept
                })
            })
            .collect();
        drop(pool);
        for (index, thread) in (0..).zip(threads) {
            let kept = thread.join().expect("the thread ends well");
            assert!(kept.iter().all(|buf| is_all(buf, index)));
        }
    }
}
