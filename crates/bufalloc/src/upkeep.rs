//! Who gives idle pages back, and when.

use alloc::string::ToString;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::time::Instant;

use bufkit::PageHeap;

use crate::signals;

/// Selects who returns idle pages to the system.
///
/// ```
/// use std::time::Duration;
/// use bufalloc::{Large, Upkeep};
///
/// // A program that starts no threads of which it does not know.
/// #[global_allocator]
/// static ALLOC: Large = Large::new().upkeep(Upkeep::Calls).age(Duration::from_secs(1));
/// # drop(vec![0_u8; 1 << 20]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upkeep {
    /// A thread, which starts when the first large block is freed, and sleeps while nothing is
    /// idle. If the thread cannot start, and in a forked child, this is `Calls`.
    Thread,
    /// Calls that free a large block, or a part of one. While there are no such calls, idle memory
    /// is kept: [`trim`](crate::trim) returns it.
    Calls,
    /// The program, which calls [`Large::tick`](crate::Large::tick).
    Ticks,
}

/// The name of the thread: Linux shows 15 bytes of it.
const NAME: &str = "alloc-keeper";
/// Of its stack.
const STACK_BYTES: usize = 256 << 10;

/// States of the thread: it was not started; it was; it is not there, and calls do its work.
const NOT_STARTED: u8 = 0;
const STARTED: u8 = 1;
const BY_CALLS: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NOT_STARTED);
/// Whether the thread sleeps until it is woken.
static IS_ASLEEP: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Thread> = OnceLock::new();
/// When pages are next given back by a call, in milliseconds since the heap was made.
static DUE: AtomicU64 = AtomicU64::new(0);
static MADE: OnceLock<Instant> = OnceLock::new();

/// Notes that the heap is made: before others see it.
pub(crate) fn begin() {
    let _first = MADE.set(Instant::now());
}

/// Sees to it that pages that were given to the heap just now go back some time.
#[inline]
pub(crate) fn after_release(heap: &'static PageHeap, upkeep: Upkeep, age: Duration) {
    match upkeep {
        Upkeep::Thread => after_release_with_thread(heap, age),
        Upkeep::Calls => look_if_due(heap, age),
        Upkeep::Ticks => {}
    }
}

fn after_release_with_thread(heap: &'static PageHeap, age: Duration) {
    // ORDER: Relaxed: states say who does the work, and carry nothing.
    match STATE.load(Ordering::Relaxed) {
        STARTED => {
            // ORDER: Relaxed: the lock of the heap orders it. Where the thread held it before this
            // one did, it had stored `true` then; else it sees what was given back.
            if IS_ASLEEP.load(Ordering::Relaxed)
                && let Some(thread) = THREAD.get()
                && IS_ASLEEP.swap(false, Ordering::Relaxed)
            {
                thread.unpark();
            }
        }
        NOT_STARTED => start(heap, age),
        _ => look_if_due(heap, age),
    }
}

#[cold]
fn start(heap: &'static PageHeap, age: Duration) {
    // ORDER: Relaxed: as above.
    if STATE.compare_exchange(NOT_STARTED, STARTED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    // What this allocates is of the allocator below: no lock is held, and no block is large. With a
    // size of its stack it does not read the environment, whose lock the caller may have.
    let thread = thread::Builder::new().name(NAME.to_string()).stack_size(STACK_BYTES);
    let _blocked = signals::block();
    if thread.spawn(move || keep(heap, age)).is_err() {
        // ORDER: Relaxed: as above.
        STATE.store(BY_CALLS, Ordering::Relaxed);
    }
}

/// Gives back what is idle, as long as the process lives.
fn keep(heap: &PageHeap, age: Duration) {
    let _first = THREAD.set(thread::current());
    #[cfg(feature = "keeper")]
    let source = bufkeeper::PressureSource::system();
    loop {
        #[cfg(feature = "keeper")]
        thread::sleep(look(heap, age, &source));
        #[cfg(not(feature = "keeper"))]
        thread::sleep(look(heap, age));
        if heap.stats().dirty_bytes == 0 {
            // Joins the mappings of pages that were moved.
            heap.trim(0);
            // ORDER: Relaxed: as in `after_release_with_thread`.
            IS_ASLEEP.store(true, Ordering::Relaxed);
            if heap.stats().dirty_bytes == 0 {
                thread::park();
            }
            // ORDER: Relaxed: a release that sees it wakes a thread that does not sleep.
            IS_ASLEEP.store(false, Ordering::Relaxed);
        }
    }
}

/// Gives back what was not needed since the last look. Returns when to look again.
#[cfg(not(feature = "keeper"))]
fn look(heap: &PageHeap, age: Duration) -> Duration {
    heap.trim_unused(0);
    age
}

/// Gives back what was not needed since the last look, and all that is free where the system is
/// short of memory. Returns when to look again.
#[cfg(feature = "keeper")]
fn look(heap: &PageHeap, age: Duration, source: &bufkeeper::PressureSource) -> Duration {
    use bufkeeper::PressureLevel;

    match source.read().level() {
        PressureLevel::High => heap.trim(0),
        PressureLevel::Medium => {
            heap.trim_unused(0);
            return age / 2;
        }
        _ => heap.trim_unused(0),
    }
    age
}

/// Gives back what was not needed since the last time, if that was `age` ago.
pub(crate) fn look_if_due(heap: &PageHeap, age: Duration) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let now = MADE.get().map_or(0, |made| millis(made.elapsed()));
    // ORDER: Relaxed: the exchange decides who looks, and carries nothing.
    let due = DUE.load(Ordering::Relaxed);
    let next = now.saturating_add(millis(age));
    // ORDER: Relaxed: as above.
    if now >= due && DUE.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        heap.trim_unused(0);
    }
}

/// Notes that this is a forked child, in which the thread is not.
#[cfg(unix)]
pub(crate) fn in_child() {
    // ORDER: Relaxed: the child has one thread.
    if STATE.load(Ordering::Relaxed) == STARTED {
        // ORDER: Relaxed: as above.
        STATE.store(BY_CALLS, Ordering::Relaxed);
    }
}

#[cfg(all(test, feature = "keeper", not(miri)))]
mod tests {
    use std::fs;

    use bufkeeper::PressureSource;

    use super::*;

    const AGE: Duration = Duration::from_secs(1);

    /// Checks how long the thread sleeps, and what is dirty then, of a block that was just freed.
    #[test]
    fn pressure_hurries_the_thread() {
        let Some(heap) = PageHeap::with_addresses(1 << 30, usize::MAX) else { return };
        let root = std::env::temp_dir().join(std::format!("bufalloc-{}", std::process::id()));
        let source = PressureSource::under(&root);
        fs::create_dir_all(root.join("proc/pressure")).unwrap();
        let looked = |some: &str, full: &str| {
            let stall = |avg: &str| std::format!("avg10={avg} avg60={avg} avg300={avg} total=0");
            let text = std::format!("some {}\nfull {}\n", stall(some), stall(full));
            fs::write(root.join("proc/pressure/memory"), text).unwrap();
            let span = heap.take(1 << 20, 1).unwrap();
            heap.trim(0);
            // SAFETY: from this heap, and given back once.
            unsafe { heap.give(span) };
            let age = look(&heap, AGE, &source);
            (age, heap.stats().dirty_bytes)
        };
        assert_eq!(looked("0.00", "0.00"), (AGE, 1 << 20));
        assert_eq!(looked("15.00", "0.00"), (AGE / 2, 1 << 20));
        assert_eq!(looked("80.00", "60.00"), (AGE, 0));
        fs::remove_dir_all(root).unwrap();
    }
}
