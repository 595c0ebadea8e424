//! The sweeper: whichever thread has something to do on the list, one at a time, and does what
//! others ask of it meanwhile.
//!
//! Code of the user's runs in it, when the memory goes: the allocator, a source, wakers. A panic
//! there is no matter of the thread that happens to sweep, and ends at the block. Without `std` it
//! passes through that thread, which continues to sweep before that.
//!
//! No request is lost: a block is pushed before the step on `STATE`, and the sweeper swaps `STATE`
//! before it swaps the stacks. It takes the finished blocks before the arrived ones, and a block
//! arrives before its `out` can come to 0, so a finished block is on the list when it is unlinked.
//! A block is off the list before its memory is freed, and no reference to the list is held then.

use core::cell::UnsafeCell;
use core::mem;
use core::ptr::{self, NonNull};

use super::head::{JOINED, Link, Orphan, count_missed};
use super::list::List;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use bufcore::author::catch_user_panic;

/// The cost of a look at a block, beside its places.
const COST: usize = 8;

/// Nobody is sweeping.
const IDLE: usize = 0;
/// A thread is the sweeper.
const BUSY: usize = 1;
/// Something has arrived or is finished.
pub(super) const ASKED: usize = 2;
/// Somebody wants a look at each block.
pub(super) const SWEEP: usize = 4;

/// `IDLE`, or `BUSY` and what the sweeper has been asked for since it last looked.
#[cfg(not(any(loom, shuttle)))]
static STATE: AtomicUsize = AtomicUsize::new(IDLE);
/// The newest block that was adopted, and is not on the list yet.
#[cfg(not(any(loom, shuttle)))]
static ARRIVED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
/// The newest block whose `out` has come to 0, and that is not freed yet.
#[cfg(not(any(loom, shuttle)))]
static FINISHED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
#[cfg(not(any(loom, shuttle)))]
static PENDING: AtomicUsize = AtomicUsize::new(0);
#[cfg(not(any(loom, shuttle)))]
static LIST: Sweepers = Sweepers(UnsafeCell::new(List::EMPTY));
#[cfg(any(loom, shuttle))]
crate::sync::checker::lazy_static! {
    static ref STATE: AtomicUsize = AtomicUsize::new(IDLE);
    static ref ARRIVED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
    static ref FINISHED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
    static ref PENDING: AtomicUsize = AtomicUsize::new(0);
    static ref LIST: Sweepers = Sweepers(UnsafeCell::new(List::EMPTY), #[cfg(loom)] loom::cell::UnsafeCell::new(()));
}

/// The list, which is the sweeper's: that of whoever made `STATE` `BUSY`. A model sees by the
/// second cell whether there are two.
struct Sweepers(UnsafeCell<List>, #[cfg(loom)] loom::cell::UnsafeCell<()>);

// SAFETY: used by the sweeper only, of which there is one at a time, each after the one before
// (`request`); the links lead to blocks that any thread may free.
unsafe impl Sync for Sweepers {}
// SAFETY: likewise.
unsafe impl Send for Sweepers {}

/// Returns how many blocks wait for their last buffer, at this moment.
#[must_use]
pub fn pending() -> usize {
    // ORDER: Relaxed, a count for people only.
    PENDING.load(Ordering::Relaxed)
}

/// Checks every waiting block, and frees those without live buffers.
///
/// This never waits. If another thread is sweeping, it is asked to sweep once more, and this call
/// returns.
///
/// ```
/// use bufkit::orphan;
///
/// // A program that is idle may ask for a look.
/// orphan::sweep();
/// assert_eq!(orphan::pending(), 0); // no pool ended with buffers out
/// ```
pub fn sweep() {
    request(SWEEP);
}

/// Hands a block to the list.
///
/// # Safety
///
/// It is valid until the list frees it, and was not handed over before.
pub(super) unsafe fn arrive(orphan: NonNull<Orphan>) {
    // ORDER: Relaxed, a count for people only.
    PENDING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `next` is this thread's until the push (O1).
    unsafe { push(&ARRIVED, orphan, |orphan| &orphan.next) };
}

/// Hands a block whose `out` has come to 0 to the sweeper.
///
/// # Safety
///
/// It was adopted, and the caller took the step to 0.
pub(super) unsafe fn finish(orphan: NonNull<Orphan>) {
    // SAFETY: `finished` is this thread's until the push (O1); only the sweeper frees the block,
    // and after that.
    unsafe { push(&FINISHED, orphan, |orphan| &orphan.finished) };
}

/// Puts a block on a stack of which all is taken at once.
///
/// # Safety
///
/// The block is valid until it is taken from the stack, and its `link` is the caller's.
unsafe fn push(stack: &AtomicPtr<Orphan>, orphan: NonNull<Orphan>, link: fn(&Orphan) -> &Link) {
    // ORDER: Relaxed; the value is only compared, the exchange below does the publishing.
    let mut head = stack.load(Ordering::Relaxed);
    loop {
        // SAFETY: valid until the exchange succeeds, at least; all that changes in a head
        // allows to be shared.
        link(unsafe { orphan.as_ref() }).set(head);
        // ORDER: Release pairs with the Acquire swap in `serve`; a failure publishes nothing.
        match stack.compare_exchange_weak(head, orphan.as_ptr(), Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Asks the sweeper for `what`, or becomes the sweeper.
pub(super) fn request(what: usize) {
    // ORDER: AcqRel. Release pairs with the Acquire of the sweeper's swap below: what we stored
    // before (a free slot, a block on a stack) is seen by its next look. Acquire pairs with the
    // Release of the last sweeper's exchange: the list is as it left it.
    if STATE.fetch_or(BUSY | what, Ordering::AcqRel) != IDLE {
        return;
    }
    // SAFETY: this thread made the state `BUSY`, so it is the only sweeper.
    unsafe { work(false) }
}

/// Serves until nobody asks for anything any more, and is the sweeper no longer then.
///
/// # Safety
///
/// The caller is the sweeper.
unsafe fn work(mut all: bool) {
    let unwinding = Unwinding;
    loop {
        // ORDER: AcqRel, as in `request`.
        let asked = STATE.swap(BUSY, Ordering::AcqRel);
        // SAFETY: the caller is the sweeper, up to the exchange below.
        unsafe { serve(all || asked & SWEEP != 0) };
        all = false;
        // ORDER: Release pairs with the Acquire of the next sweeper. A failure reads nothing that
        // is used.
        if STATE.compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed).is_ok() {
            return mem::forget(unwinding);
        }
    }
}

/// Is dropped when a panic passes through the sweeper: the others' memory does not stay for that.
struct Unwinding;

impl Drop for Unwinding {
    fn drop(&mut self) {
        // A failure in a model ends it.
        if !cfg!(any(loom, shuttle)) {
            // SAFETY: this thread is the sweeper still (`work`). The look that did not come to its
            // end is taken again.
            unsafe { work(true) }
        }
    }
}

/// Borrows the list.
///
/// # Safety
///
/// The caller is the sweeper, and has no other borrow of it.
unsafe fn list<'a>() -> &'a mut List {
    // SAFETY: the caller's promise.
    unsafe { &mut *LIST.0.get() }
}

/// Takes in what has arrived, frees what is finished, and looks at blocks that wait: at each, or at
/// as many as were paid for.
///
/// # Safety
///
/// The caller is the sweeper.
unsafe fn serve(all: bool) {
    #[cfg(loom)]
    LIST.1.with_mut(|_| ());
    // ORDER: Acquire, for both, pairs with the Release exchange in `push`. In this order: each
    // block arrived before it was finished, and who finished it has seen that, so a finished one
    // that is found here is on the list or among the arrived.
    let mut finished = Finished(FINISHED.swap(ptr::null_mut(), Ordering::Acquire));
    let mut arrived = ARRIVED.swap(ptr::null_mut(), Ordering::Acquire);
    while let Some(orphan) = NonNull::new(arrived) {
        // SAFETY: a block on the stack is valid, and its links are the sweeper's now (O1).
        arrived = unsafe { orphan.as_ref() }.next.get();
        // SAFETY: the list is the caller's, and this borrow of it ends with the statement.
        let list = unsafe { list() };
        // SAFETY: just taken from the stack; it is taken off the list before or when it is freed.
        unsafe { list.link(orphan) };
    }
    while let Some(orphan) = finished.pop() {
        // SAFETY: on the list, as said above, and nobody else's (O2).
        unsafe { free(orphan) };
    }
    let look_at = if all { look_at_all } else { look_at_some };
    // SAFETY: the caller is the sweeper.
    unsafe { look_at() }
}

/// Finished blocks that were taken from their stack. If a panic passes through, those that are left
/// go back there.
struct Finished(*mut Orphan);

impl Finished {
    fn pop(&mut self) -> Option<NonNull<Orphan>> {
        let orphan = NonNull::new(self.0)?;
        // SAFETY: a finished block is valid until the sweeper frees it, and that is who has this.
        self.0 = unsafe { orphan.as_ref() }.finished.get();
        Some(orphan)
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        // A failure in a model ends it.
        while !cfg!(any(loom, shuttle))
            && let Some(orphan) = self.pop()
        {
            // SAFETY: adopted, and its `out` is 0 (O2); the one who took that step has handed it
            // on.
            unsafe { finish(orphan) };
        }
    }
}

/// Looks at each block that waits.
///
/// # Safety
///
/// The caller is the sweeper.
unsafe fn look_at_all() {
    // SAFETY: the list is the caller's.
    let mut at = unsafe { list() }.first;
    while let Some(orphan) = NonNull::new(at) {
        // SAFETY: on the list, and so valid until the sweeper frees it.
        at = unsafe { orphan.as_ref() }.next.get();
        // SAFETY: likewise. Only the sweeper frees, so the next one stays.
        unsafe { look(orphan) };
    }
}

/// Looks at as many blocks as were paid for, from the cursor on, up to the end of the list.
///
/// # Safety
///
/// The caller is the sweeper.
unsafe fn look_at_some() {
    // SAFETY: the list is the caller's, and no borrow of it lasts while a block's methods are
    // called; here and below.
    let List { first, cursor, .. } = *unsafe { list() };
    let mut at = if cursor.is_null() { first } else { cursor };
    while let Some(orphan) = NonNull::new(at) {
        // SAFETY: as above.
        let List { cursor, credit, .. } = unsafe { list() };
        *cursor = at;
        // SAFETY: on the list, and so valid.
        let head = unsafe { orphan.as_ref() };
        let Some(left) = credit.checked_sub(head.slots.get() + COST) else { return };
        *credit = left;
        at = head.next.get();
        *cursor = at;
        // SAFETY: on the list. Only the sweeper frees, so the next one stays.
        unsafe { look(orphan) };
    }
    // One round is enough for all of them.
    // SAFETY: as above.
    unsafe { list() }.credit = 0;
}

/// Frees a block if nothing of it is out.
///
/// # Safety
///
/// The caller is the sweeper, and the block is on the list.
unsafe fn look(orphan: NonNull<Orphan>) {
    // SAFETY: valid, and its pool is gone: blocks arrive after that.
    let settled = unsafe { count_missed(orphan) };
    // SAFETY: on the list, and so valid.
    let out = unsafe { &(*orphan.as_ptr()).out };
    // ORDER: see `JOINED`.
    if settled != 0 && out.fetch_sub(settled, JOINED) == settled {
        // SAFETY: this was the step to 0.
        unsafe { free(orphan) };
    }
}

/// Frees a block whose `out` has come to 0.
///
/// # Safety
///
/// The caller is the sweeper; the block is on the list, and is nobody else's.
unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: on the list, and so valid.
    let Orphan { methods, .. } = unsafe { orphan.as_ref() };
    // SAFETY: the sweeper's, who has no other borrow of it, and this one ends with the statement.
    let list = unsafe { list() };
    // SAFETY: on the list up to now.
    unsafe { list.unlink(orphan) };
    // ORDER: Relaxed, a count for people only.
    PENDING.fetch_sub(1, Ordering::Relaxed);
    // It may call this module again: that finds a sweeper at work then, and returns.
    // SAFETY: nobody uses the block any more, and it is on no list.
    let _ = catch_user_panic(|| unsafe { (methods.free)(orphan) });
}
