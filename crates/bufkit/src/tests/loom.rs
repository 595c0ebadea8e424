//! Models of the parts that strategies are built with, for every interleaving that loom finds.
//!
//! Each model has no more than what the part promises. So a weaker order in the part shows here,
//! whichever strategies depend on it. A `Shadow` cell stands for bytes, which loom does not see.

use alloc::boxed::Box;
use core::ptr::NonNull;
use core::task::Waker;
use std::task::Wake;

use loom::sync::Arc;
use loom::thread;
use testkit::models::{Shadow, the_last_has_it_alone};

use crate::orphan::{self, Methods, Orphan};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use crate::{
    shared_pool::{
        ref_counts::RefCounts,
        registry::{Link, Registry, RegistryEntry},
    },
    sync::{biased, fences, growth_signal::GrowthSignal},
};

/// An entry of a roll.
#[derive(Default)]
struct Entry {
    link: Link<Self>,
    shadow: Shadow,
}

// SAFETY: one field.
unsafe impl RegistryEntry for Entry {
    fn link(&self) -> &Link<Self> {
        &self.link
    }
}

/// A roll that threads share.
#[derive(Default)]
struct Entries(Registry<Entry>);

// SAFETY: entries are added and shown only, and that is what the model is about.
unsafe impl Send for Entries {}
// SAFETY: likewise.
unsafe impl Sync for Entries {}

/// One thread adds an entry, and another that finds it sees it complete.
#[test]
fn loom_a_roll_shows_complete_entries() {
    loom::model(|| {
        let entries = Arc::<Entries>::default();
        let other = {
            let entries = Arc::clone(&entries);
            thread::spawn(move || {
                let entry = Entry::default();
                entry.shadow.write();
                entries.0.add(|| entry).expect("the allocator has room");
            })
        };
        thread::yield_now();
        for entry in entries.0.iter() {
            assert_eq!(entry.shadow.read(), 1);
        }
        other.join().unwrap();
    });
}

#[test]
fn loom_the_last_handle_ends_the_pool() {
    let counts = || {
        let counts = RefCounts::one_handle();
        counts.add_handle();
        counts
    };
    the_last_has_it_alone(counts, RefCounts::drop_handle);
}

#[test]
fn loom_the_last_reference_frees() {
    let counts = || {
        let counts = RefCounts::one_handle();
        counts.add_ref();
        counts
    };
    the_last_has_it_alone(counts, |counts| counts.drop_refs(1));
}

/// A weak handle is upgraded while the last handle is dropped: the pool ends once, and not while an
/// upgraded handle uses it.
#[test]
fn loom_an_upgrade_against_the_last_handle() {
    loom::model(|| {
        let shared = Arc::new((RefCounts::one_handle(), Shadow::default()));
        // That of the weak handle.
        shared.0.add_ref();
        let leave = |(counts, shadow): &(RefCounts, Shadow)| {
            shadow.read();
            if counts.drop_handle() {
                shadow.write();
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || leave(&shared))
        };
        if shared.0.try_add_handle() {
            leave(&shared);
        }
        other.join().unwrap();
        assert_eq!(shared.1.read(), 1, "it ended once");
        assert!(!shared.0.try_add_handle(), "and stays ended");
    });
}

/// Two threads each announce something, execute their fence, and look for the other's
/// announcement: at least one of them sees it.
fn one_sees_the_other(fences: [fn(); 2]) {
    loom::model(move || {
        let announced = Arc::new([(); 2].map(|()| AtomicBool::new(false)));
        let sees = move |announced: &[AtomicBool; 2], own: usize| {
            // ORDER: Relaxed, for both: only the fence orders them.
            announced[own].store(true, Ordering::Relaxed);
            fences[own]();
            announced[1 - own].load(Ordering::Relaxed)
        };
        let other = {
            let announced = Arc::clone(&announced);
            thread::spawn(move || sees(&announced, 1))
        };
        let is_seen = sees(&announced, 0);
        assert!(other.join().unwrap() || is_seen, "each missed the other");
    });
}

#[test]
fn loom_light_and_heavy_fences() {
    one_sees_the_other([fences::light, || assert!(fences::heavy(false), "never refused here")]);
}

#[test]
fn loom_full_fences() {
    one_sees_the_other([fences::full, fences::full]);
}

/// A block that outlives its pool.
#[repr(C)]
struct Block {
    orphan: Orphan,
    /// Of the buffer that is released by a plain store: `OUT`, `RELEASED` or `SETTLED`.
    state: AtomicU32,
    /// Stands for the block's memory.
    shadow: Shadow,
}

const OUT: u32 = 0;
const RELEASED: u32 = 1;
const SETTLED: u32 = 2;

static METHODS: Methods = Methods { count_missed, free };

/// Settles the buffer that is released by a plain store.
unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: the caller's promise: valid. It is the first field of a block.
    let block = unsafe { orphan.cast::<Block>().as_ref() };
    block.shadow.read();
    // ORDER: Acquire pairs with the Release of the plain store; Release, as strategies have it.
    let settled = block.state.compare_exchange(RELEASED, SETTLED, Ordering::AcqRel, Ordering::Relaxed);
    usize::from(settled.is_ok())
}

unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: made by `At::new`, and nobody uses it any more.
    let block = unsafe { Box::from_raw(orphan.cast::<Block>().as_ptr()) };
    block.shadow.write();
}

/// Where a block is.
#[derive(Clone, Copy)]
struct At(NonNull<Block>);

// SAFETY: what threads do with a block is what the models are about.
unsafe impl Send for At {}

impl At {
    fn new() -> Self {
        let orphan = Orphan::counted(&METHODS);
        let block = Block { orphan, state: AtomicU32::new(OUT), shadow: Shadow::default() };
        Self(NonNull::from(Box::leak(Box::new(block))))
    }

    /// The end of the pool, with `out` buffers out.
    fn end_of_pool(self, out: usize) {
        // SAFETY: as many releases follow, and it is called once.
        unsafe { orphan::defer_free(self.0.cast(), out, 1) };
    }

    /// Uses the memory, and releases a buffer after the end of the pool.
    fn use_and_release(self) {
        // SAFETY: the buffer is out.
        unsafe { self.0.as_ref() }.shadow.read();
        // SAFETY: one of the buffers that are out, once.
        unsafe { orphan::release_orphaned(self.0.cast()) };
    }

    /// Releases a buffer as if its thread had not seen the end of the pool.
    fn release_plainly(self) {
        // SAFETY: the buffer is out.
        let state = &unsafe { self.0.as_ref() }.state;
        // ORDER: Release pairs with the Acquire in `count_missed`.
        state.store(RELEASED, Ordering::Release);
    }
}

/// The only buffer is released while the pool ends: whoever frees the block does so after both.
#[test]
fn loom_end_of_a_pool_against_a_late_release() {
    loom::model(|| {
        let block = At::new();
        let other = thread::spawn(move || block.use_and_release());
        block.end_of_pool(1);
        other.join().unwrap();
        assert_eq!(orphan::pending(), 0);
    });
}

/// A look at the list finds the release of the last buffer, after the other one was counted: it
/// frees the block after both.
#[test]
fn loom_look_against_a_late_release() {
    loom::model(|| {
        let block = At::new();
        block.end_of_pool(2);
        let other = thread::spawn(move || block.use_and_release());
        block.release_plainly();
        orphan::sweep();
        other.join().unwrap();
        orphan::sweep();
        assert_eq!(orphan::pending(), 0);
    });
}

/// A look finds a block that arrives at that moment: as the thread left it whose pool ended.
#[test]
fn loom_look_against_the_end_of_a_pool() {
    loom::model(|| {
        // The first use of a static orders what follows, in loom: so all are used before.
        assert_eq!(orphan::pending(), 0);
        orphan::sweep();
        let other = thread::spawn(|| {
            let block = At::new();
            // SAFETY: nobody else knows it yet.
            unsafe { block.0.as_ref() }.shadow.write();
            block.end_of_pool(1);
            block.use_and_release();
        });
        thread::yield_now();
        orphan::sweep();
        other.join().unwrap();
        assert_eq!(orphan::pending(), 0);
    });
}

/// A keeper that was woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: alloc::sync::Arc<Self>) {
        // ORDER: Relaxed: read when the threads have ended.
        self.0.store(1, Ordering::Relaxed);
    }
}

/// A pool grows and rings while a keeper goes to sleep, which may have asked before: either the
/// keeper sees that the pool has grown, or it is woken. Fails with `unfenced`.
fn a_bell_is_heard(has_asked: bool) {
    loom::model(move || {
        let keeper = alloc::sync::Arc::<Woken>::default();
        let waker = Waker::from(alloc::sync::Arc::clone(&keeper));
        let pool = Arc::new((GrowthSignal::default(), AtomicU32::new(0)));
        if has_asked {
            assert!(pool.0.register(&waker), "nobody else is there");
        }
        let grows = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                // ORDER: Relaxed, for both: only the bell's fences order them.
                pool.1.store(1, Ordering::Relaxed);
                pool.0.notify_now();
            })
        };
        let sleeps = pool.0.register(&waker) && pool.1.load(Ordering::Relaxed) == 0;
        grows.join().unwrap();
        // ORDER: Relaxed: the thread has ended.
        let is_woken = keeper.0.load(Ordering::Relaxed) != 0;
        assert!(!sleeps || is_woken, "the keeper sleeps beside a pool that has grown");
    });
}

#[test]
fn loom_a_bell_is_heard() {
    a_bell_is_heard(false);
}

#[test]
fn loom_a_bell_is_heard_again() {
    a_bell_is_heard(true);
}

/// The owner and one that watches use a value in turn, and see what the other did; two that watch
/// do not meet either. Fails with `biased-without-a-fence`.
#[test]
fn loom_a_biased_value_is_used_by_one() {
    loom::model(|| {
        let (owned, watched) = biased::new(Shadow::default());
        let owner = thread::spawn(move || {
            let times = (0..2).filter(|_| owned.enter().map(|shadow| shadow.write()).is_some());
            times.count()
        });
        let other = {
            let watched = watched.clone();
            thread::spawn(move || watched.look(|shadow| shadow.write()).is_some())
        };
        let seen = watched.look(|shadow| shadow.read()).unwrap_or_default();
        let written = owner.join().unwrap() + usize::from(other.join().unwrap());
        assert!(seen as usize <= written);
    });
}
