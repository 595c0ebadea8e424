//! T23: a global allocator that uses recorded pools while it is asked to allocate and to free.
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bufcore::{Buf, BufferPool, HeapLease, HeapPool};
use buftrace::{Meta, RecordedLease, Recorder, Recording};

/// What the allocator does within one of its calls.
type Action = *mut dyn FnMut();

thread_local! {
    /// The action of this thread, and how many calls come before it.
    static ARMED: Cell<Option<(Action, usize)>> = const { Cell::new(None) };
    /// Whether the calls of this thread that take memory let `HELPER` work, and wait until it has.
    static ASKS_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// Where the thread is that works while another is within the allocator.
static HELPER: AtomicU32 = AtomicU32::new(IDLE);
const IDLE: u32 = 0;
const ASKED: u32 = 1;
const DONE: u32 = 2;

/// Waits until the helper is there.
fn wait_for(state: u32) {
    // ORDER: SeqCst, for ease: a test's switch.
    while HELPER.load(Ordering::SeqCst) != state {
        thread::yield_now();
    }
}

/// Lets the helper go on, if it is at `from`; says whether it was.
fn goes_on(from: u32) -> bool {
    // ORDER: SeqCst, as above.
    HELPER.compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// The system's allocator, with users' code in it.
struct Reentering;

#[global_allocator]
static ALLOCATOR: Reentering = Reentering;

impl Reentering {
    fn come_back() {
        match ARMED.take() {
            Some((action, 0)) => {
                // SAFETY: `within` has not returned, and the action runs once.
                unsafe { (*action)() }
            }
            Some((action, before)) => ARMED.set(Some((action, before - 1))),
            None => {}
        }
        if ASKS_HELPER.get() && goes_on(IDLE) {
            wait_for(DONE);
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came, after code that does not use the
// memory.
unsafe impl GlobalAlloc for Reentering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::come_back();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if !ASKS_HELPER.get() {
            Self::come_back();
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) };
    }
}

/// Runs `body`, and `action` in the call of the allocator that comes after `before` others of it.
/// Returns whether there was one.
fn within(before: usize, mut action: impl FnMut(), body: impl FnOnce()) -> bool {
    let action: *mut dyn FnMut() = &raw mut action;
    // SAFETY: only the lifetime changes, and it is taken back below.
    let action: Action = unsafe { std::mem::transmute::<*mut dyn FnMut(), Action>(action) };
    ARMED.set(Some((action, before)));
    body();
    ARMED.take().is_none()
}

/// Each call of the allocator within `body` drops a buffer of the recording, and acquires one.
fn everywhere(body: fn(&mut Recorder<HeapPool>, &Recording)) -> usize {
    for before in 0.. {
        let recording = Recording::new();
        let mut pool = Recorder::new(HeapPool::new(), &recording);
        let mut inner = Recorder::new(HeapPool::new(), &recording);
        let mut held: Option<Buf<RecordedLease<HeapLease>>> = inner.acquire(7).ok();
        let came = within(before, || held = inner.acquire(8).ok(), || body(&mut pool, &recording));
        drop(held);
        // An event behind the end of a recording is not in it.
        let events = recording.finish(Meta::default()).events().len();
        assert!(events >= 2, "{events} events");
        if !came {
            return before;
        }
    }
    0
}

fn recorded_requests(pool: &mut Recorder<HeapPool>, _: &Recording) {
    let bufs: Vec<_> = (0..40).map(|bytes| pool.acquire(bytes).expect("room")).collect();
    drop(bufs);
}

fn an_end(pool: &mut Recorder<HeapPool>, recording: &Recording) {
    let _held = pool.acquire(1).expect("room");
    assert!(!recording.finish(Meta::new("an end")).events().is_empty());
}

/// Another thread's first event comes while this one is within the allocator, because it ends.
fn a_thread_that_ends() {
    let recording = Recording::new();
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut pool = Recorder::new(HeapPool::new(), &recording);
            barrier.wait();
            wait_for(ASKED);
            drop(pool.acquire(1));
            assert!(goes_on(ASKED));
        });
        let ends = scope.spawn(|| {
            drop(Recorder::new(HeapPool::new(), &recording).acquire(1));
            barrier.wait();
            ASKS_HELPER.set(true);
        });
        ends.join().expect("a thread ends without a panic");
        // An end that asked for no memory has asked nobody.
        goes_on(IDLE);
    });
    assert_eq!(recording.finish(Meta::default()).events().len(), 4);
}

fn main() {
    // A hang is a failure.
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(60));
        eprintln!("still not done");
        process::exit(1);
    });
    // First, while no thread has ended that was recorded.
    a_thread_that_ends();
    println!("a thread that ends: ok");
    println!("recorded requests: ok, {} calls", everywhere(recorded_requests));
    println!("an end: ok, {} calls", everywhere(an_end));
}
