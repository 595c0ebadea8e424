//! The list of memory that outlived its pool, when code panics that it calls (T22).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bufcore::strategy::orphans::{self, Methods, Orphan};
use buftest::process::alone;

const LIMIT: Duration = Duration::from_secs(60);

static FREED: AtomicUsize = AtomicUsize::new(0);
static IS_OUT: AtomicBool = AtomicBool::new(true);
static LOOK_PANICS: AtomicBool = AtomicBool::new(false);
/// Blocks whose last buffers are released by code that runs in a sweep.
static LAST: Mutex<Vec<Last>> = Mutex::new(Vec::new());

/// One buffer of a block is out.
struct Last(NonNull<Orphan>);

// SAFETY: any thread may release it.
unsafe impl Send for Last {}

/// The bookkeeping of a pool.
#[repr(C)]
struct Control {
    orphan: Orphan,
    panics: bool,
}

static METHODS: Methods = Methods { settle, free };

unsafe fn settle(_: NonNull<Orphan>) -> usize {
    // ORDER: SeqCst, for ease.
    assert!(!LOOK_PANICS.swap(false, SeqCst), "a look panics");
    0
}

unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: the head of a boxed block, which nobody uses any more.
    let control = unsafe { Box::from_raw(orphan.cast::<Control>().as_ptr()) };
    // ORDER: SeqCst, for ease.
    FREED.fetch_add(1, SeqCst);
    let last = std::mem::take(&mut *LAST.lock().expect("nothing panics"));
    for Last(orphan) in last {
        // SAFETY: the one release of its block.
        unsafe { orphans::release_late(orphan) };
    }
    assert!(!control.panics, "the user's code panics");
}

unsafe fn try_free(orphan: NonNull<Orphan>) -> bool {
    // ORDER: SeqCst, for ease.
    let is_back = !IS_OUT.load(SeqCst);
    if is_back {
        // SAFETY: a block of this kind, of which nothing is out.
        unsafe { free(orphan) };
    }
    is_back
}

fn boxed(orphan: Orphan, panics: bool) -> NonNull<Orphan> {
    NonNull::from(Box::leak(Box::new(Control { orphan, panics }))).cast()
}

/// A pool has ended with one buffer out, which is counted.
fn counted(panics: bool) -> Last {
    let orphan = boxed(Orphan::counted(&METHODS), panics);
    // SAFETY: the head of such a block, adopted once; one release is to come.
    unsafe { orphans::adopt_counted(orphan, 1, 1) };
    Last(orphan)
}

/// A pool has ended, and is asked whether something is out.
fn asked(panics: bool) {
    let orphan = boxed(Orphan::new(try_free), panics);
    // SAFETY: the head of such a block, adopted once.
    unsafe { orphans::adopt(orphan) };
}

/// Blocks that have gone, and blocks that wait.
fn freed_and_pending() -> (usize, usize) {
    // ORDER: SeqCst, for ease.
    (FREED.load(SeqCst), orphans::pending())
}

/// The others go, and so does what is left to the list later.
#[test]
fn t22_memory_that_panics_when_it_goes() {
    alone(module_path!(), "t22_memory_that_panics_when_it_goes", LIMIT, || {
        // Several are finished in one sweep.
        let first = counted(true);
        let others = [false, true, false, true, true, false].map(counted);
        LAST.lock().expect("nothing panics").extend(others);
        // SAFETY: the one release of its block.
        let release = AssertUnwindSafe(|| unsafe { orphans::release_late(first.0) });
        assert!(catch_unwind(release).is_ok(), "a release does not panic for the sake of another's memory");
        assert_eq!(freed_and_pending(), (7, 0));

        [true, false, true, true, false].into_iter().for_each(asked);
        assert_eq!(freed_and_pending(), (7, 5));
        // ORDER: SeqCst, for ease.
        IS_OUT.store(false, SeqCst);
        assert!(catch_unwind(orphans::sweep).is_ok());
        assert_eq!(freed_and_pending(), (12, 0));
    });
}

/// A strategy's own mistake: it is told, and the list continues.
#[test]
fn t22_a_look_that_panics() {
    alone(module_path!(), "t22_a_look_that_panics", LIMIT, || {
        asked(false);
        let last = counted(false);
        asked(false);
        // ORDER: SeqCst, for ease, for both.
        IS_OUT.store(false, SeqCst);
        LOOK_PANICS.store(true, SeqCst);
        // The newest is looked at first: one is freed before the panic, and one after it.
        assert!(catch_unwind(orphans::sweep).is_err());
        assert_eq!(freed_and_pending(), (2, 1));
        // SAFETY: the one release of its block.
        unsafe { orphans::release_late(last.0) };
        assert_eq!(freed_and_pending(), (3, 0));
    });
}
