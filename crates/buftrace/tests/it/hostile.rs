//! T22: pools that panic behind a recorder, at their n-th call for every n. What was recorded is
//! what was served, and pool, buffers and recording go on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bufcore::{Buf, BufferPool, Lease};
use buftrace::{EventKind, Meta, Recorder, Recording, Trace};
use testkit::hostile::{Answer, Scripted};
use testkit::pattern;

/// Sizes of requests.
const SIZES: [usize; 4] = [100, 3000, 1, 50_000];

/// A pool that panics at its call `at`, and its number of calls.
fn panicking(at: usize) -> (Scripted, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    // ORDER: SeqCst, for ease; here and below.
    let script = move |_| {
        if count.fetch_add(1, SeqCst) == at {
            resume_unwind(Box::new("the pool panics, as it was told to"));
        }
        Answer::Honest
    };
    (Scripted::new(script), calls)
}

/// Fills a buffer.
fn fill<L: Lease>(buf: &mut Buf<L>, bytes: usize) {
    pattern::fill(&mut buf.spare_mut()[..bytes], bytes as u64, 0);
    buf.commit(bytes);
}

/// The sizes of the acquires of a trace.
fn sizes(trace: &Trace) -> Vec<u64> {
    let size = |event: &buftrace::Event| match event.kind {
        EventKind::Acquire { bytes, .. } => Some(bytes),
        EventKind::Release { .. } => None,
    };
    trace.events().iter().filter_map(size).collect()
}

#[test]
fn t22_pools_that_panic() {
    let mut at = 0;
    loop {
        let recording = Recording::new();
        let (pool, calls) = panicking(at);
        let mut pool = Recorder::new(pool, &recording);
        let panics = Cell::new(0);
        let mut held = Vec::new();
        let mut served = Vec::new();
        macro_rules! caught {
            ($call:expr) => {{
                let caught = catch_unwind(AssertUnwindSafe(|| $call));
                panics.set(panics.get() + usize::from(caught.is_err()));
                caught.ok()
            }};
        }
        for bytes in SIZES {
            if let Some(buf) = caught!(pool.acquire(bytes)) {
                let mut buf = buf.expect("the heap has room");
                fill(&mut buf, bytes);
                held.push((buf, bytes));
                served.push(bytes as u64);
            }
            if let Some(buf) = caught!(pool.acquire_zeroed(bytes)) {
                drop(buf.expect("the heap has room"));
                served.push(bytes as u64);
            }
            let _ = caught!(pool.stats().in_use);
            let _ = caught!(pool.max_capacity());
        }
        // ORDER: SeqCst, as above.
        let is_over = at >= calls.load(SeqCst);
        assert_eq!(panics.get(), usize::from(!is_over), "call {at}");
        if is_over {
            break;
        }
        // It continues: the pool, and the recording.
        drop(pool.acquire(7).expect("the heap has room"));
        served.push(7);
        held.iter().for_each(|(buf, bytes)| pattern::check(buf, *bytes as u64, 0));
        let out = held.len();
        drop(pool);
        let trace = recording.finish(Meta::new("panics"));
        assert_eq!((sizes(&trace), trace.out_at_end().len()), (served, out), "call {at}");
        assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
        drop(held);
        at += 1;
    }
    assert!(at > 12, "{at} calls");
}
