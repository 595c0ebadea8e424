//! T6 to T9: pools, threads and handles that end in every order.

use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bufcore::{Buf, BufferPool, Lease, SplitLease, Writer};
use bufkit::orphan;

use crate::Kit;
use crate::append::Append;
use crate::model::Shadow;
use crate::{pattern, process};

/// Longer than any drop may run for.
const PROMPT: Duration = Duration::from_millis(500);
const BYTES: usize = 1500;

/// Makes a filled buffer.
#[track_caller]
fn filled<P: BufferPool<Lease: SplitLease>>(pool: &mut P, seed: u64) -> Buf<P::Lease> {
    super::filled(pool, BYTES, seed).expect("a small request")
}

#[track_caller]
fn check<L: Lease>(buf: &Buf<L>, seed: u64) {
    assert_eq!(buf.len(), BYTES);
    pattern::check(buf, seed, 0);
}

fn drop_promptly<T>(what: &str, value: T) {
    process::within(PROMPT, what, || drop(value));
}

/// Takes what the allocator may have been given back, and scribbles on it: blocks of 64 bytes to
/// 1 MiB, more of the smaller ones.
fn scribble() {
    let blocks: Vec<Vec<u8>> = (0..64).map(|i| vec![0xEE; 64 << (i % 15).min(i / 4)]).collect();
    std::hint::black_box(&blocks);
}

static SHELF: Mutex<Vec<(Box<dyn Any + Send>, u64)>> = Mutex::new(Vec::new());

/// Checks its buffer when it is dropped, at the end of a thread or while one unwinds.
struct Checked<L: Lease>(Buf<L>, u64);

impl<L: Lease> Drop for Checked<L> {
    fn drop(&mut self) {
        // No assertion: a second panic while unwinding would end the process without a message.
        if pattern::mismatch(&self.0, self.1, 0).is_some() || self.0.len() != BYTES {
            eprintln!("a buffer changed before it was dropped");
            std::process::abort();
        }
    }
}

/// Checks that buffers outlive their pool on the same thread, on another, in a `static`, as a
/// temporary, while unwinding (T6).
pub fn outlives<P: BufferPool<Lease: SplitLease> + Send + 'static>(kit: &Kit<P>) {
    for round in 0..20 {
        // The same thread: nothing out, one out, several out; dropped in both orders.
        for out in [0, 1, 2, 5] {
            let mut pool = (kit.make)();
            let mut bufs: Vec<_> = (0..out).map(|seed| (filled(&mut pool, seed), seed)).collect();
            drop_promptly("dropping a pool", pool);
            scribble();
            bufs.iter().for_each(|(buf, seed)| check(buf, *seed));
            if round % 2 == 0 {
                bufs.reverse();
            }
            while let Some((buf, seed)) = bufs.pop() {
                check(&buf, seed);
                drop_promptly("dropping a buffer", buf);
                scribble();
                bufs.iter().for_each(|(buf, seed)| check(buf, *seed));
            }
        }
        // Another thread, which drops while the pool is being dropped here.
        let mut pool = (kit.make)();
        let bufs: Vec<_> = (0..4).map(|seed| Checked(filled(&mut pool, seed), seed)).collect();
        let views: Vec<_> = (0..3).map(|seed| filled(&mut pool, seed).freeze()).collect();
        let clones = views.clone();
        let dropper = thread::spawn(move || {
            for (seed, view) in (0..).zip(clones) {
                pattern::check(&view, seed, 0);
            }
            drop(bufs);
        });
        drop_promptly("dropping a pool", pool);
        for (seed, view) in (0..).zip(views) {
            pattern::check(&view, seed, 0);
        }
        dropper.join().expect("the dropper does not panic");
        // A temporary in a tail expression: the pool is dropped before it is.
        let len = {
            let mut pool = (kit.make)();
            filled(&mut pool, 3).len()
        };
        assert_eq!(len, BYTES);
        // A frame that is open when its pool goes.
        let mut pool = (kit.make)();
        let buf = filled(&mut pool, 4);
        let mut writer = Writer::new(pool);
        pattern::fill(writer.append(BYTES).expect("a small frame"), 5, 0);
        drop_promptly("dropping a pool with an open frame", writer);
        check(&buf, 4);
        // Unwinding: the pool first, and the buffer first.
        for pool_first in [true, false] {
            let unwound = catch_unwind(|| {
                let mut pool = (kit.make)();
                let buf = Checked(filled(&mut pool, 6), 6);
                if pool_first {
                    let _held = (buf, pool);
                    resume_unwind(Box::new("on purpose"));
                }
                let _held = (pool, buf);
                resume_unwind(Box::new("on purpose"));
            });
            assert!(unwound.is_err());
        }
        // A static outlives everything.
        let mut pool = (kit.make)();
        SHELF.lock().expect("the shelf").push((Box::new(filled(&mut pool, round)), round));
    }
    scribble();
    let mut shelf = SHELF.lock().expect("the shelf");
    for (buf, seed) in shelf.drain(..) {
        let buf = buf.downcast::<Buf<P::Lease>>().expect("a buffer was put there");
        check(&buf, seed);
        drop_promptly("dropping a buffer", buf);
    }
    process::within(PROMPT, "sweeping", orphan::sweep);
}

/// Drops the last buffers on other threads at the moment at which the pool is dropped here (T6).
///
/// Each thread writes right before its release, and nothing but the pool orders these writes and
/// the end of the memory: whoever frees it has to see them, or else ThreadSanitizer reports the
/// free.
pub fn late_releases<P: BufferPool<Lease: SplitLease> + Send + 'static>(kit: &Kit<P>) {
    const THREADS: usize = 3;
    orphan::sweep();
    let before = orphan::pending();
    for round in 0..kit.scaled(10_000) {
        let (ready, gate) = (AtomicUsize::new(0), AtomicBool::new(false));
        let at_the_gate = || {
            // ORDER: Relaxed, here and below: what these two order the pool would not have to.
            ready.fetch_add(1, Relaxed);
            while !gate.load(Relaxed) {
                thread::yield_now();
            }
        };
        let mut pool = (kit.make)();
        let view = filled(&mut pool, 9).freeze();
        let bufs: Vec<_> = (0..THREADS - 1).map(|seed| filled(&mut pool, seed as u64)).collect();
        thread::scope(|scope| {
            let clone = view.clone();
            let mut threads = vec![scope.spawn(move || {
                at_the_gate();
                pattern::check(&clone, 9, 0);
            })];
            for (seed, mut buf) in (0..).zip(bufs) {
                threads.push(scope.spawn(move || {
                    at_the_gate();
                    check(&buf, seed);
                    pattern::fill(&mut buf, !seed, 0);
                    check(&buf, !seed);
                }));
            }
            // ORDER: Relaxed, as above.
            while ready.load(Relaxed) < THREADS {
                thread::yield_now();
            }
            // ORDER: Relaxed, as above.
            gate.store(true, Relaxed);
            if round % 2 == 0 {
                drop(pool);
                pattern::check(&view, 9, 0);
                drop(view);
            } else {
                // Nothing is out here: the others' releases are the last, or the pool's end is.
                drop(view);
                drop(pool);
            }
            threads.into_iter().for_each(|thread| thread.join().expect("the bytes are right"));
        });
    }
    orphan::sweep();
    assert!(orphan::pending() <= before, "memory that outlived its pool stays after its last buffer");
}

/// Forgets a thousand handles of every kind (T7).
pub fn forgotten<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    const HANDLES: usize = 1000;
    let shadow = Shadow::new();
    let mut pool = (kit.make)();
    let before = filled(&mut pool, 1);
    mem::forget(shadow.claim(before.as_ptr(), before.capacity()));
    for index in 0..HANDLES {
        let Ok(mut buf) = pool.acquire(64) else {
            assert!(kit.rejects && index > 0, "refused after {index} of {HANDLES} were forgotten");
            break;
        };
        mem::forget(shadow.claim(buf.as_ptr(), buf.capacity()));
        buf.extend_from_slice(b"abcdefgh").expect("there is room");
        match index % 4 {
            0 => mem::forget(buf),
            1 => mem::forget(buf.freeze()),
            2 => {
                let view = buf.freeze();
                mem::forget(view.clone());
                drop(view);
            }
            _ => {
                let mut view = buf.freeze();
                mem::forget(view.split_to(3));
                mem::forget(view);
            }
        }
    }
    check(&before, 1);
    // Others go on as long as there is anything left to give; a claim over forgotten memory would
    // be an overlap.
    for seed in 0..2000 {
        match pool.acquire(64) {
            Ok(buf) => drop(shadow.claim(buf.as_ptr(), buf.capacity())),
            Err(error) => assert!(kit.rejects, "refused in round {seed}: {error}"),
        }
    }
    drop_promptly("dropping a pool with forgotten buffers", pool);
    check(&before, 1);
    drop_promptly("dropping the last buffer", before);
    // A loss is what was forgotten at most: one of several leaves the others.
    let mut pool = (kit.make)();
    mem::forget(pool.acquire(64));
    for seed in 0..1000 {
        check(&filled(&mut pool, seed), seed);
    }
    // A forgotten pool does not hurt its buffers.
    let buf = filled(&mut pool, 7);
    mem::forget(pool);
    check(&buf, 7);
    drop_promptly("dropping a buffer of a forgotten pool", buf);
}

thread_local! {
    /// Made before the pool's own thread-locals, if it has any.
    static EARLY: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
    /// Made after them.
    static LATE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Ends threads that hold buffers, and joins one while a buffer is held (T8).
pub fn threads_end<P: BufferPool<Lease: SplitLease> + Send + 'static>(kit: &Kit<P>) {
    for round in 0..20 {
        let mut pool = (kit.make)();
        let held = filled(&mut pool, 99);
        let (stack, early, late, queued) =
            (filled(&mut pool, 1), filled(&mut pool, 2), filled(&mut pool, 3), filled(&mut pool, 4));
        let inside = kit.make;
        let (mut sender, receiver) = rtrb::RingBuffer::new(1);
        assert!(sender.push(Checked(queued, 4)).is_ok(), "the queue has room");
        let ending = thread::spawn(move || {
            EARLY.with_borrow_mut(|shelf| shelf.push(Box::new(Checked(early, 2))));
            // A pool of the thread's own: its buffers end with the thread too, before or after it.
            let mut own = inside();
            let (kept, given) = (Checked(filled(&mut own, 5), 5), filled(&mut own, 6));
            LATE.with_borrow_mut(|shelf| {
                shelf.push(Box::new(Checked(late, 3)));
                if round % 2 == 0 {
                    shelf.push(Box::new(own));
                    shelf.push(Box::new(kept));
                } else {
                    shelf.push(Box::new(kept));
                    shelf.push(Box::new(own));
                }
            });
            let _receiver = receiver;
            let _stack = Checked(stack, 1);
            given
        });
        // Joined while one is held here.
        let given = ending.join().expect("the thread ends well");
        check(&given, 6);
        check(&held, 99);
        drop(sender);
        drop((given, held));
        // The memory is usable again.
        for seed in 0..200 {
            check(&filled(&mut pool, seed), seed);
        }
        if (kit.is_fallback)(&filled(&mut pool, 1)) {
            panic!("memory that ended threads held did not come back");
        }
    }
}

/// Lets consumers panic with buffers held (T9).
pub fn panicking_consumer<P: BufferPool<Lease: SplitLease> + Send>(kit: &Kit<P>) {
    let shadow = Shadow::new();
    let mut pool = (kit.make)();
    let witness = filled(&mut pool, 50);
    let _claim = shadow.claim(witness.as_ptr(), witness.capacity());
    for round in 0..50 {
        let bufs: Vec<_> = (0..3).map(|seed| Checked(filled(&mut pool, seed), seed)).collect();
        let view = filled(&mut pool, 9).freeze();
        let clone = view.clone();
        let consumer = thread::spawn(move || {
            let _held = (bufs, clone);
            if round % 2 == 0 {
                panic!("on purpose");
            }
        });
        assert_eq!(consumer.join().is_err(), round % 2 == 0);
        pattern::check(&view, 9, 0);
        drop(view);
        // The same on this thread, with a frame open.
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _buf = Checked(filled(&mut pool, 8), 8);
            let mut writer = Writer::new(&mut pool);
            pattern::fill(writer.append(300).expect("a small frame"), 7, 0);
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        let buf = filled(&mut pool, 10);
        assert!(!(kit.is_fallback)(&buf), "what a panic held did not come back");
        drop(shadow.claim(buf.as_ptr(), buf.capacity()));
        check(&witness, 50);
    }
}
