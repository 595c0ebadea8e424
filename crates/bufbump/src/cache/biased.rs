//! A lock that is biased to one thread, its owner, which takes it without a locked instruction.
//!
//! The owner announces in `at_work` that it uses the value, and then looks at `word`. Who claims
//! the value sets a flag in `word`, and then looks at `at_work`. Between the two steps of each is a
//! fence (`bufkit::sync::fences`), so that not both can miss each other. An owner that finds the
//! value claimed takes the mutex, which a claim holds from start to end. A claim that finds the
//! owner at work is given up.
//!
//! Where the system refuses the fence that others need, the owner is told to take the mutex from
//! then on. It notes that it does, under the mutex. Until then no claim is had.
//!
//! ```text
//!  word   |CLOSED|FREE|PLAIN|REFUSED|CLAIMED|
//! ```
//!
//! # Invariants
//!
//! - W1: the value has one user at a time. That is the owner, between its look at `word` that finds
//!   nothing and the end of what it announced. Or it is who holds the mutex, and is the owner, or
//!   found it not at work behind a flag and the fence, or found `PLAIN`.
//! - W2: `REFUSED`, `PLAIN` and `CLOSED` stay. The owner sets `PLAIN`, under the mutex, when it has
//!   seen `REFUSED`; a lock may begin with both.
//! - W3: without an owner (`FREE`) the value is nobody's, until `adopt`.

use core::cell::UnsafeCell;

use bufkit::sync::{AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering, RELEASE, fences, lock};

/// Somebody other than the owner uses the value.
const CLAIMED: u32 = 1;
/// The system refused the fence: the owner is to take the mutex.
const REFUSED: u32 = 2;
/// The owner takes the mutex (W2).
const PLAIN: u32 = 4;
/// There is no owner.
const FREE: u32 = 8;
/// The owner is not to use the value any more, except to empty it.
const CLOSED: u32 = 16;

/// A value with an owner. See the head of this file.
pub(crate) struct BiasedLock<T> {
    word: AtomicU32,
    at_work: AtomicBool,
    mutex: Mutex<()>,
    value: UnsafeCell<T>,
    /// Stands for the value, to the model checker.
    #[cfg(all(test, loom))]
    shadow: testkit::models::Shadow,
}

// SAFETY: the value has one user at a time, whichever thread that is (W1).
unsafe impl<T: Send> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    /// Makes a lock without an owner. `is_biased` says whether the system has the fence.
    pub(crate) fn new(value: T, is_biased: bool) -> Self {
        Self {
            word: AtomicU32::new(if is_biased { FREE } else { FREE | REFUSED | PLAIN }),
            at_work: AtomicBool::new(false),
            mutex: Mutex::default(),
            value: UnsafeCell::new(value),
            #[cfg(all(test, loom))]
            shadow: testkit::models::Shadow::default(),
        }
    }

    /// Makes the calling thread the owner, if there is none and the lock is not closed.
    pub(crate) fn adopt(&self) -> bool {
        // ORDER: Relaxed: a hint, and nothing is done with what was found.
        let word = self.word.load(Ordering::Relaxed);
        word & (FREE | CLOSED) == FREE
            // ORDER: Acquire pairs with the Release of `leave`: the owner before is done with the
            // value.
            && self.word.compare_exchange(word, word & !FREE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the ownership of the calling thread.
    pub(crate) fn leave(&self) {
        // ORDER: Release pairs with the Acquire of `adopt`.
        self.word.fetch_or(FREE, RELEASE);
    }

    /// Returns whether the lock is closed. An owner that looks after a use of the value, and a
    /// light fence, learns of an end that found it at work.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        // ORDER: Relaxed: the fence orders it, and nothing is read that this would order.
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Lets `f` use the value. The caller has it alone (W1).
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(all(test, loom))]
        self.shadow.write();
        // SAFETY: the caller's alone (W1), and not borrowed elsewhere: no `f` of this crate enters
        // the lock again.
        f(unsafe { &mut *self.value.get() })
    }

    /// Lets `f` use the value, unless the lock is closed. The caller is the owner; `f` is short,
    /// and calls no code of others.
    #[inline(always)]
    pub(crate) fn enter<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        // ORDER: Relaxed: it publishes nothing; the fence orders it.
        self.at_work.store(true, Ordering::Relaxed);
        fences::light();
        // ORDER: Acquire pairs with the Release of `claim`: what others did with the value is seen.
        if self.word.load(Ordering::Acquire) != 0 {
            return self.enter_held(f);
        }
        let result = self.with(f);
        // ORDER: Release pairs with the Acquire of `is_at_rest`: who claims the value sees what the
        // owner did with it.
        self.at_work.store(false, RELEASE);
        Some(result)
    }

    /// Enters the lock where there is something in `word`.
    #[cold]
    #[inline(never)]
    fn enter_held<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _held = self.hold();
        (!self.is_closed()).then(|| self.with(f))
    }

    /// Lets `f` use the value, whether or not the lock is closed. The caller is the owner.
    pub(crate) fn enter_to_take<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _held = self.hold();
        self.with(f)
    }

    /// Takes the mutex, for the owner.
    fn hold(&self) -> MutexGuard<'_, ()> {
        // ORDER: Release, as in `enter`: of what the owner did before, this may be what a claim
        // sees.
        self.at_work.store(false, RELEASE);
        let held = lock(&self.mutex);
        // ORDER: Relaxed, for both: claims look under the mutex.
        if self.word.load(Ordering::Relaxed) & REFUSED != 0 {
            self.word.fetch_or(PLAIN, Ordering::Relaxed);
        }
        held
    }

    /// Returns whether the owner does not use the value. The caller holds the mutex, and has
    /// executed the fence behind the flag that it set.
    fn is_at_rest(&self) -> bool {
        // ORDER: Acquire pairs with the Release of `enter` and `hold`.
        !self.at_work.load(Ordering::Acquire)
    }

    /// Lets `f` use the value, if it has an owner, which is not at work, and the lock is not
    /// closed. For any thread; `f` is short, and calls no code of others.
    pub(crate) fn claim<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _held = lock(&self.mutex);
        // ORDER: Relaxed: the fence orders it.
        let word = self.word.fetch_or(CLAIMED, Ordering::Relaxed);
        let is_had = word & (FREE | CLOSED) == 0 && (word & PLAIN != 0 || self.asks());
        let result = is_had.then(|| self.with(f));
        // ORDER: Release pairs with the Acquire of `enter`.
        self.word.fetch_and(!CLAIMED, RELEASE);
        result
    }

    /// Has the owner take the mutex.
    #[cfg(all(test, loom))]
    pub(crate) fn refuse(&self) {
        // ORDER: Relaxed, as in `asks`.
        self.word.fetch_or(REFUSED, Ordering::Relaxed);
    }

    /// Executes the fence of a claim, and returns whether the value is the caller's.
    fn asks(&self) -> bool {
        let is_fenced = fences::heavy(false);
        if !is_fenced {
            // ORDER: Relaxed: an owner that reads it late takes the mutex that much later.
            self.word.fetch_or(REFUSED, Ordering::Relaxed);
        }
        is_fenced && self.is_at_rest()
    }

    /// Closes the lock. Returns whether an owner may be at work.
    pub(crate) fn close(&self) -> bool {
        // ORDER: Relaxed: the fence orders it.
        self.word.fetch_or(CLOSED, Ordering::Relaxed) & (FREE | PLAIN) == 0
    }

    /// Lets `f` use the value of a closed lock, if its owner is not at work. `is_fenced` says that
    /// a heavy fence was executed since, or that the caller is the owner.
    pub(crate) fn empty_closed<R>(&self, is_fenced: bool, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _held = lock(&self.mutex);
        // ORDER: Relaxed: set under the mutex.
        let is_plain = self.word.load(Ordering::Relaxed) & PLAIN != 0;
        (is_plain || is_fenced && self.is_at_rest()).then(|| self.with(f))
    }
}
