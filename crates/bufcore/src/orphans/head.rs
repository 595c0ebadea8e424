//! The head of a block that can outlive its pool, and what the list asks of such a block.

use core::cell::Cell;
use core::fmt;
use core::ptr::{self, NonNull};

use crate::sync::{AtomicUsize, Ordering};

/// In the count of a block whose pool has not yet said how many of its buffers are out.
pub(super) const RUNNING: usize = 1 << (usize::BITS - 1);

/// The ordering of what counts releases.
// ORDER: Release pairs with the Acquire of whoever settles the last one, which so sees all that the
// others did with the memory and with the block. Acquire is for that one.
pub(super) const JOINED: Ordering = Ordering::AcqRel;

pub(super) type Link = Cell<*mut Orphan>;

/// The head of a control block that can be left behind. First field of a `repr(C)` block.
///
/// # Invariants
///
/// - O1: `next` and `prev` are written by whoever adopts the block, until it has pushed it, and by
///   the sweeper after that; `finished` is written by whoever brought `out` to 0, and read by the
///   sweeper after that.
/// - O2: after the pool's end `out` is the number of buffers whose release was not counted. One
///   step brings it to 0, and whoever takes that step has the block alone, with the list. Until
///   that step the block is valid.
pub struct Orphan {
    /// Releases that are not counted yet, and `RUNNING` until the pool's end has counted the
    /// buffers (O2).
    pub(super) out: AtomicUsize,
    /// The next block of the arrived ones, and then of the list.
    pub(super) next: Link,
    /// The block in front of it on the list.
    pub(super) prev: Link,
    /// The next of the finished blocks.
    pub(super) finished: Link,
    /// Places that a look at the block has to visit. Written before the block arrives.
    pub(super) places: Cell<usize>,
    pub(super) kind: Kind,
}

/// How a block is found to have nothing out.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// By asking it.
    Asked(unsafe fn(NonNull<Orphan>) -> bool),
    /// By `out`.
    Counted(&'static Methods),
}

/// What the list asks of a block whose releases are counted.
#[derive(Debug)]
pub struct Methods {
    /// Looks for buffers that were released without being counted: by plain stores that saw their
    /// pool alive. Marks each, so that no other call finds it again, and returns how many it
    /// marked. Several threads may be in it with one block.
    ///
    /// Called with the address of a valid block, after its pool has marked what is out.
    pub settle: unsafe fn(NonNull<Orphan>) -> usize,
    /// Frees the block and its memory. Called once, when nobody else uses it. It neither panics nor
    /// keeps a link to it.
    pub free: unsafe fn(NonNull<Orphan>),
}

impl Orphan {
    /// A head whose block is freed by `try_free`, which finds out by itself whether anything is
    /// out.
    ///
    /// `try_free` is called with the block's address, by one thread at a time, after
    /// [`adopt`](super::adopt). It returns `false` while anything is out; once it has returned
    /// `true` the block does not exist any more. It does not panic.
    #[must_use]
    pub fn new(try_free: unsafe fn(NonNull<Orphan>) -> bool) -> Self {
        Self::of(Kind::Asked(try_free))
    }

    /// A head whose late releases are counted by [`release_late`](super::release_late).
    #[must_use]
    pub fn counted(methods: &'static Methods) -> Self {
        Self::of(Kind::Counted(methods))
    }

    fn of(kind: Kind) -> Self {
        let link = || Cell::new(ptr::null_mut());
        Self {
            out: AtomicUsize::new(RUNNING),
            next: link(),
            prev: link(),
            finished: link(),
            places: Cell::new(1),
            kind,
        }
    }
}

impl fmt::Debug for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orphan").finish_non_exhaustive()
    }
}

/// Marks what was released without being counted, and returns how much that was.
///
/// # Safety
///
/// The block is valid during the call.
pub(super) unsafe fn settle(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: `kind` is not written after the block was made.
    match unsafe { (*orphan.as_ptr()).kind } {
        // SAFETY: a valid block of these methods.
        Kind::Counted(methods) => unsafe { (methods.settle)(orphan) },
        Kind::Asked(_) => 0,
    }
}
