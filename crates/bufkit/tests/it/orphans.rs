//! The list of memory that outlived its pool, when code panics that it calls (T22).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bufkit::orphan::{self, Methods, Orphan};
use testkit::process::alone;

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
    is_settled: AtomicBool,
    panics: bool,
}

static METHODS: Methods = Methods { count_missed, free };

unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    // ORDER: SeqCst, for ease, here and below.
    assert!(!LOOK_PANICS.swap(false, SeqCst), "a look panics");
    // SAFETY: the head of a valid block.
    let control = unsafe { orphan.cast::<Control>().as_ref() };
    usize::from(!IS_OUT.load(SeqCst) && !control.is_settled.swap(true, SeqCst))
}

unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: the head of a boxed block, which nobody uses any more.
    let control = unsafe { Box::from_raw(orphan.cast::<Control>().as_ptr()) };
    // ORDER: SeqCst, for ease.
    FREED.fetch_add(1, SeqCst);
    let last = std::mem::take(&mut *LAST.lock().expect("nothing panics"));
    for Last(orphan) in last {
        // SAFETY: the one release of its block.
        unsafe { orphan::release_orphaned(orphan) };
    }
    assert!(!control.panics, "the user's code panics");
}

/// A pool has ended with one buffer out.
fn counted(panics: bool) -> Last {
    let control = Control { orphan: Orphan::counted(&METHODS), is_settled: AtomicBool::new(false), panics };
    let orphan = NonNull::from(Box::leak(Box::new(control))).cast();
    // SAFETY: the head of such a block, adopted once; one release is to come.
    unsafe { orphan::defer_free(orphan, 1, 1) };
    Last(orphan)
}

/// Blocks that have gone, and blocks that wait.
fn freed_and_pending() -> (usize, usize) {
    // ORDER: SeqCst, for ease.
    (FREED.load(SeqCst), orphan::pending())
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
        let release = AssertUnwindSafe(|| unsafe { orphan::release_orphaned(first.0) });
        assert!(catch_unwind(release).is_ok(), "a release does not panic for the sake of another's memory");
        assert_eq!(freed_and_pending(), (7, 0));

        // These are released without being counted, and a look finds them.
        let _uncounted = [true, false, true, true, false].map(counted);
        assert_eq!(freed_and_pending(), (7, 5));
        // ORDER: SeqCst, for ease.
        IS_OUT.store(false, SeqCst);
        assert!(catch_unwind(orphan::sweep).is_ok());
        assert_eq!(freed_and_pending(), (12, 0));
    });
}

/// A strategy's own mistake: it is told, and the list continues.
#[test]
fn t22_a_look_that_panics() {
    alone(module_path!(), "t22_a_look_that_panics", LIMIT, || {
        let _uncounted = [false; 3].map(counted);
        // ORDER: SeqCst, for ease, for both.
        IS_OUT.store(false, SeqCst);
        LOOK_PANICS.store(true, SeqCst);
        // All are looked at again.
        assert!(catch_unwind(orphan::sweep).is_err());
        assert_eq!(freed_and_pending(), (3, 0));
    });
}
