//! The control block, with which the bookkeeping in a region begins; see [`crate::ControlBlock`].

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bufcore::Region;
use bufcore::author::Released;

#[cfg(feature = "alloc")]
use crate::orphan::{self, Methods, Orphan};

/// The header of the bookkeeping of a pool in a region. It keeps the region until the pool and its
/// last buffer are dropped, and counts the releases.
///
/// - The pool writes it into its region, with the bookkeeping after it.
/// - Dropping the pool [leaves](Self::leave) it: unowned if all buffers were released, and to the
///   late releases otherwise.
/// - A release that finds its pool dropped [counts itself](Self::release_orphaned).
///
/// A pool of `bufslot` and a ring of `bufring` have one.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufkit::{ControlBlock, CountMissed};
///
/// /// A pool whose late releases are all counted.
/// struct Pool;
///
/// // SAFETY: there is none to be found.
/// unsafe impl CountMissed for Pool {
///     unsafe fn count_missed(_: NonNull<ControlBlock>, _: usize) -> usize {
///         0
///     }
/// }
///
/// # #[cfg(feature = "alloc")] {
/// let region = bufcore::Region::heap(4096, 64)?;
/// let block = region.as_ptr().cast::<ControlBlock>();
/// // SAFETY: aligned, and the region has room for it.
/// unsafe { block.write(ControlBlock::new::<Pool>(region, false)) };
///
/// // The pool ends while a buffer has one of its four places.
/// // SAFETY: the block was not left before, and one release is to come.
/// assert!(unsafe { ControlBlock::leave(block, 1, 4) }.is_none());
/// // SAFETY: that release.
/// unsafe { ControlBlock::release_orphaned(block) }; // frees the region
/// # }
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct ControlBlock {
    #[cfg(feature = "alloc")]
    orphan: Orphan,
    /// The region that the block is in; moved out before it is dropped.
    pub region: ManuallyDrop<Region>,
    /// The releases that buffers count.
    pub released: Released,
    /// Whether the pool zeroes released memory. Not written after the block was made.
    #[cfg(feature = "wipe")]
    pub wipe: bool,
}

/// A pool whose bookkeeping starts with a [`ControlBlock`].
///
/// # Safety
///
/// [`count_missed`](Self::count_missed) implements [`Methods::count_missed`].
///
/// [`Methods::count_missed`]: crate::orphan::Methods::count_missed
///
/// ```
/// # use std::ptr::NonNull;
/// use bufkit::{ControlBlock, CountMissed, SlotState};
///
/// /// A pool of slots behind its control block.
/// struct Pool;
///
/// // SAFETY: one exchange finds each slot that was freed after the mark.
/// unsafe impl CountMissed for Pool {
///     unsafe fn count_missed(block: NonNull<ControlBlock>, places: usize) -> usize {
///         // SAFETY: the slots, which the pool has made, are there.
///         let slot = |at| unsafe { &*block.add(1).cast::<SlotState>().as_ptr().add(at) };
///         (0..places).filter(|&at| slot(at).count_missed()).count()
///     }
/// }
/// ```
pub unsafe trait CountMissed {
    /// Finds the slots that were left to their leases but freed by an uncounted release, once each.
    ///
    /// # Safety
    ///
    /// The block is the header of a pool of this type, which has [left](ControlBlock::leave) it
    /// with this number of `places`.
    unsafe fn count_missed(block: NonNull<ControlBlock>, places: usize) -> usize;
}

impl ControlBlock {
    /// Makes the control block of a pool `P` in `region`.
    #[must_use]
    pub fn new<P: CountMissed>(region: Region, wipe: bool) -> Self {
        #[cfg(not(feature = "wipe"))]
        let _ = wipe;
        Self {
            #[cfg(feature = "alloc")]
            orphan: Orphan::counted(const { &Methods { count_missed: count_missed::<P>, free } }),
            region: ManuallyDrop::new(region),
            released: Released::default(),
            #[cfg(feature = "wipe")]
            wipe,
        }
    }

    /// Ends the pool's use of the block. The pool has [marked](crate::SlotState::orphan) those of
    /// the `places` slots that buffers hold. Returns the region if there are none. Otherwise the
    /// region is freed with the last of the `marked` slots, unless it is static.
    ///
    /// # Safety
    ///
    /// 1. The block is one that [`new`](Self::new) made for this pool, in its region. It was not
    ///    left before, and the pool does not use it again, nor the memory after it.
    /// 2. `marked` releases happen later, or have happened. Each is counted by one
    ///    [`release_orphaned`](Self::release_orphaned), which may have been called already, or is
    ///    found by one call of `count_missed`, but not both.
    pub unsafe fn leave(this: NonNull<Self>, marked: usize, places: usize) -> Option<Region> {
        if marked == 0 {
            // SAFETY: nothing in the region is in use, and the pool does not use the block again.
            return Some(unsafe { take_region(this) });
        }
        #[cfg(not(feature = "alloc"))]
        let _ = places;
        #[cfg(feature = "alloc")]
        // SAFETY: valid, and not adopted yet.
        if !unsafe { this.as_ref() }.region.is_static() {
            // SAFETY:
            // - the head: `orphan` is the first field (`repr(C)`), and its methods are for such
            //   blocks (`new`).
            // - counted once, nobody else: the caller's promise.
            unsafe { orphan::defer_free(this.cast(), marked, places) };
        }
        None
    }

    /// Counts the release of a slot that was marked before its pool left the block.
    ///
    /// # Safety
    ///
    /// 1. The release of the slot was not counted before.
    /// 2. After this call no code uses the slot, nor the block for it.
    pub unsafe fn release_orphaned(this: NonNull<Self>) {
        #[cfg(not(feature = "alloc"))]
        let _ = this;
        #[cfg(feature = "alloc")]
        // SAFETY: `orphan` is the first field (`repr(C)`), made by `Orphan::counted`; the rest is
        // the caller's promise.
        unsafe {
            orphan::release_orphaned(this.cast());
        };
    }
}

/// As `Methods::count_missed` says, for the blocks of a pool `P`.
///
/// # Safety
///
/// `orphan` is the first field of a valid block of `P`, which was left.
#[cfg(feature = "alloc")]
unsafe fn count_missed<P: CountMissed>(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: valid; not written after the block has arrived.
    let places = unsafe { (*orphan.as_ptr()).slots.get() };
    // SAFETY: the caller's promise; `leave` has noted the places.
    unsafe { P::count_missed(orphan.cast(), places) }
}

/// As `Methods::free` says.
///
/// # Safety
///
/// `orphan` is the first field of an adopted block that nobody uses any more.
#[cfg(feature = "alloc")]
unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: the caller's promise.
    drop(unsafe { take_region(orphan.cast()) });
}

/// Moves the region out of the block that is in it.
///
/// # Safety
///
/// The block is valid, and is not used again.
unsafe fn take_region(block: NonNull<ControlBlock>) -> Region {
    // SAFETY: the block is valid; the copy in it is never dropped (`ManuallyDrop`), so the region
    // has one owner.
    let block = unsafe { block.read() };
    ManuallyDrop::into_inner(block.region)
}
