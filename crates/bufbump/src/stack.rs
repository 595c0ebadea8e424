//! Stacks of what nobody owns, for all threads: Treiber's (1986), whose pop takes one element while
//! the others stay to be seen.
//!
//! The difficulty is this: between a pop's look at the top and its exchange, an element may be
//! taken, used and put back. The exchange would succeed, with a successor that is long gone. So an
//! element is *referred to* by whoever looks at it, and is put back only when nobody refers to it.
//! The last one that refers to it puts it back. This is the free list of Desrochers ("Solving the
//! ABA problem for lock-free free lists", 2014).
//!
//! ```text
//!  refs   | wanted on a stack, one bit for each | references: the stack's own, and one |
//!         |                                     | for each pop that looks at it        |
//! ```
//!
//! # Invariants
//!
//! - K1: an element on a stack has the stack's reference. One that is on none has an owner, or is
//!   wanted on a stack and referred to.
//! - K2: `next` is written only while the count of references is zero, by whoever is about to put
//!   the element on a stack. So it stays as it is for whoever has a reference.
//! - K3: a pop looks at an element that it does not own, so elements stay valid while any pop runs
//!   (`depot`, H2).
//! - K4: an element that is wanted and not on its stack is being put there, by a push or a pop that
//!   is at work and hides no other. So when a pop finds nothing, no more elements are free than
//!   threads are at work in these functions at that moment.

use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicPtr, AtomicU32, Ordering, RELEASE};

/// The bit of `refs` for the first stack; that of the second is twice it.
const WANTED: u32 = 1 << 30;
/// The count of references.
const REFS: u32 = WANTED - 1;

/// What orders the looks at an element and the next writing of its link.
// ORDER: Release pairs with the Acquire of whoever finds the count at zero: looks at the link are
// over before it is written. Acquire pairs with the Release of the element's last owner, for
// whoever puts it on the stack in its place.
const JOINED: Ordering = Ordering::AcqRel;

/// One of the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackId {
    First,
    Second,
}

impl StackId {
    fn wanted(self) -> u32 {
        match self {
            Self::First => WANTED,
            Self::Second => WANTED << 1,
        }
    }
}

/// What an element has for the stacks.
pub(crate) struct StackLink<T> {
    /// The element below (K2).
    next: AtomicPtr<T>,
    refs: AtomicU32,
}

impl<T> Default for StackLink<T> {
    fn default() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), refs: AtomicU32::new(0) }
    }
}

/// What can be on a stack.
///
/// # Safety
///
/// [`stack_link`](Self::stack_link) returns the same link of a value each time, which nobody but
/// the stacks uses.
pub(crate) unsafe trait StackEntry: Sized {
    /// Returns the link where the stacks note what they have to know of the element.
    fn stack_link(&self) -> &StackLink<Self>;
}

/// Two stacks of elements that go from one to the other.
pub(crate) struct Stacks<T> {
    /// The top of each, null, or `closed()`.
    tops: [AtomicPtr<T>; 2],
}

/// Returns the mark of a top on which nothing may be pushed any more.
fn closed<T>() -> *mut T {
    ptr::without_provenance_mut(1)
}

impl<T: StackEntry> Stacks<T> {
    pub(crate) fn new() -> Self {
        Self { tops: [(); 2].map(|()| AtomicPtr::new(ptr::null_mut())) }
    }

    fn top(&self, which: StackId) -> &AtomicPtr<T> {
        &self.tops[which as usize]
    }

    /// Puts `item` on a stack; `false` when that is closed, and then the element is still the
    /// caller's.
    ///
    /// # Safety
    ///
    /// 1. The element is valid, on no stack, and the caller's alone.
    /// 2. It stays valid until it is popped, or the stack closed.
    pub(crate) unsafe fn push(&self, which: StackId, item: NonNull<T>) -> bool {
        // SAFETY: the caller's, until it is wanted.
        let link = unsafe { item.as_ref() }.stack_link();
        if link.refs.fetch_add(which.wanted(), JOINED) != 0 {
            // A pop that looked at it before it was taken: it puts it there when it ends. Not
            // closed: a pop has a handle.
            return true;
        }
        // SAFETY: wanted, and nobody refers to it.
        unsafe { self.put(which, item) }
    }

    /// Puts an element that is wanted, and that nobody refers to, on its stack; `false` when that
    /// is closed.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push); the caller found the count at zero, with the stack's bit.
    unsafe fn put(&self, which: StackId, item: NonNull<T>) -> bool {
        // SAFETY: the caller's promise, until it is on the stack.
        let link = unsafe { item.as_ref() }.stack_link();
        let top = self.top(which);
        loop {
            // ORDER: Relaxed: compared only; the exchange publishes.
            let head = top.load(Ordering::Relaxed);
            if head == closed() {
                // ORDER: Relaxed: the element is the caller's alone again.
                link.refs.store(0, Ordering::Relaxed);
                return false;
            }
            // ORDER: Relaxed: the store below publishes it to those who get a reference (K2).
            link.next.store(head, Ordering::Relaxed);
            // ORDER: Release pairs with the Acquire in `pop`, where a reference is taken: the link
            // is seen.
            link.refs.store(1, Ordering::Release);
            // ORDER: Release pairs with the Acquire in `pop`: the element's contents are seen. A
            // failure publishes nothing.
            if top.compare_exchange(head, item.as_ptr(), RELEASE, Ordering::Relaxed).is_ok() {
                return true;
            }
            // Pops that know the element from earlier may have a reference by now: then one of them
            // puts it there.
            if link.refs.fetch_add(which.wanted().wrapping_sub(1), JOINED) != 1 {
                return true;
            }
        }
    }

    /// Takes one element; `None` when there is none that is not just being moved (K4).
    ///
    /// # Safety
    ///
    /// 1. The stack is not closed before this ends.
    /// 2. All elements that were on one of the stacks when this began, or come to it, stay valid
    ///    until it ends (K3).
    pub(crate) unsafe fn pop(&self, which: StackId) -> Option<NonNull<T>> {
        let top = self.top(which);
        // ORDER: Acquire pairs with the Release in `put`: the element's contents are seen.
        let mut head = top.load(Ordering::Acquire);
        loop {
            let item = NonNull::new(head)?;
            debug_assert!(head != closed(), "closed while the pool was held");
            // SAFETY: it was on the stack after this began (rule 2).
            let link = unsafe { item.as_ref() }.stack_link();
            // ORDER: Relaxed: compared only.
            let refs = link.refs.load(Ordering::Relaxed);
            if refs & REFS == 0
                // ORDER: Acquire pairs with the Release of the store in `put`: the link is the one
                // of this stay (K2).
                || link
                    .refs
                    .compare_exchange(refs, refs + 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_err()
            {
                // Taken meanwhile, or looked at by another: look again. A model has to be told that
                // others go on first.
                #[cfg(all(test, any(loom, shuttle)))]
                bufkit::sync::checker::thread::yield_now();
                // ORDER: Acquire, as above.
                head = top.load(Ordering::Acquire);
                continue;
            }
            // ORDER: Relaxed: not written while this has a reference.
            let next = link.next.load(Ordering::Relaxed);
            // ORDER: Acquire, for both, as for the first load. Others see what is below as its own
            // push published it.
            match top.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    // The stack's reference and this one.
                    link.refs.fetch_sub(2, JOINED);
                    return Some(item);
                }
                Err(now) => head = now,
            }
            let before = link.refs.fetch_sub(1, JOINED);
            for which in [StackId::First, StackId::Second] {
                if before == which.wanted() + 1 {
                    // SAFETY: wanted, and this was the last reference; valid, as this has not ended
                    // (rule 2).
                    let is_open = unsafe { self.put(which, item) };
                    debug_assert!(is_open, "closed while the pool was held");
                }
            }
        }
    }

    /// Takes all of a stack, and lets nothing in any more; hands each element to `f`, which may do
    /// with it as it likes.
    ///
    /// # Safety
    ///
    /// No pop runs now or later, on either stack.
    pub(crate) unsafe fn close(&self, which: StackId, mut f: impl FnMut(NonNull<T>)) {
        // ORDER: Acquire pairs with the Release in `put`; nothing is published.
        let mut at = self.top(which).swap(closed(), Ordering::Acquire);
        while let Some(item) = NonNull::new(at) {
            // SAFETY: what was on the stack is valid, and the caller's now.
            let link = unsafe { item.as_ref() }.stack_link();
            // ORDER: Relaxed, for both: no pop is at work, so nobody else uses them.
            at = link.next.load(Ordering::Relaxed);
            link.refs.store(0, Ordering::Relaxed);
            f(item);
        }
    }
}
