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

/// Heads a control block that can outlive its pool. It is the first field of a `repr(C)` block.
///
/// # Invariants
///
/// - O1: `next` and `prev` are written by the thread that adopts the block, until it has pushed it,
///   and by the sweeper after that. `finished` is written by the thread that lowered `out` to 0,
///   and used by the sweeper after that.
/// - O2: after the pool's end, `out` is the number of buffers whose release was not counted. One
///   step lowers it to 0. The thread of that step, together with the list, then owns the block.
///   Until that step the block is valid.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use bufkit::orphan::{Methods, Orphan, self};
///
/// /// The control block of a pool.
/// #[repr(C)]
/// struct Control {
///     orphan: Orphan,
///     is_freed: &'static AtomicBool,
/// }
///
/// /// Releases of this strategy are always counted, so a look never finds one.
/// unsafe fn count_missed(_: NonNull<Orphan>) -> usize {
///     0
/// }
///
/// unsafe fn free(orphan: NonNull<Orphan>) {
///     // SAFETY: the head of a boxed block, which is not used again.
///     let control = unsafe { Box::from_raw(orphan.cast::<Control>().as_ptr()) };
///     control.is_freed.store(true, Ordering::Relaxed);
/// }
///
/// static METHODS: Methods = Methods { count_missed, free };
/// static IS_FREED: AtomicBool = AtomicBool::new(false);
///
/// let control = Control { orphan: Orphan::counted(&METHODS), is_freed: &IS_FREED };
/// let orphan = NonNull::from(Box::leak(Box::new(control))).cast::<Orphan>();
/// // The pool ends while one buffer is in use.
/// // SAFETY: the head of such a block, adopted once; one release is to come.
/// unsafe { orphan::defer_free(orphan, 1, 1) };
/// assert!(!IS_FREED.load(Ordering::Relaxed));
/// // SAFETY: the release of that buffer.
/// unsafe { orphan::release_orphaned(orphan) };
/// assert!(IS_FREED.load(Ordering::Relaxed));
/// ```
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
    pub(crate) slots: Cell<usize>,
    pub(super) methods: &'static Methods,
}

/// The functions that the list calls on a block. [`Orphan`] has an example of them.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use bufkit::orphan::{Methods, Orphan};
///
/// /// A block of one slot, whose release is a plain store: `true` is "released".
/// #[repr(C)]
/// struct Control {
///     orphan: Orphan,
///     is_released: AtomicBool,
///     is_counted: AtomicBool,
/// }
///
/// unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
///     // SAFETY: the head of a valid block.
///     let control = unsafe { orphan.cast::<Control>().as_ref() };
///     let found = control.is_released.load(Ordering::Acquire)
///         && !control.is_counted.swap(true, Ordering::Relaxed);
///     usize::from(found)
/// }
///
/// unsafe fn free(orphan: NonNull<Orphan>) {
///     // SAFETY: the head of a boxed block, which is not used again.
///     drop(unsafe { Box::from_raw(orphan.cast::<Control>().as_ptr()) });
/// }
///
/// static METHODS: Methods = Methods { count_missed, free };
/// let mut control = Control {
///     orphan: Orphan::counted(&METHODS),
///     is_released: AtomicBool::new(true),
///     is_counted: AtomicBool::new(false),
/// };
/// let orphan = NonNull::from(&mut control).cast();
/// // SAFETY: the head of a valid block.
/// assert_eq!(unsafe { [(METHODS.count_missed)(orphan), (METHODS.count_missed)(orphan)] }, [1, 0]);
/// ```
#[derive(Debug)]
pub struct Methods {
    /// Finds buffers that were released without being counted: by plain stores that read the pool
    /// as alive. It marks each, so that no other call finds it again, and returns the number.
    /// Several threads may call it at once for one block. It does not panic.
    ///
    /// The list calls it with the address of a valid block, after its pool has marked the live
    /// buffers.
    pub count_missed: unsafe fn(NonNull<Orphan>) -> usize,
    /// Frees the block and its memory. The list calls it once, when no other code uses the block.
    /// It keeps no link to the block.
    ///
    /// User code may panic in it, such as that of a [`MemoryProvider`](bufcore::MemoryProvider).
    /// The block then counts as freed, and is not visited again. With `std` the panic is caught.
    pub free: unsafe fn(NonNull<Orphan>),
}

impl Orphan {
    /// Makes a head whose late releases are counted by
    /// [`release_orphaned`](super::release_orphaned).
    #[must_use]
    pub fn counted(methods: &'static Methods) -> Self {
        let link = || Cell::new(ptr::null_mut());
        Self {
            out: AtomicUsize::new(RUNNING),
            next: link(),
            prev: link(),
            finished: link(),
            slots: Cell::new(1),
            methods,
        }
    }
}

impl fmt::Debug for Orphan {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orphan").finish_non_exhaustive()
    }
}

/// Marks what was released without being counted, and returns how much that was.
///
/// # Safety
///
/// The block is valid during the call.
pub(super) unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: `methods` is not written after the block was made.
    let methods = unsafe { (*orphan.as_ptr()).methods };
    // SAFETY: a valid block of these methods.
    unsafe { (methods.count_missed)(orphan) }
}
