//! The control block, with which the bookkeeping in a region begins; see [`crate::ControlBlock`].

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bufcore::Region;
use bufcore::author::Released;

#[cfg(feature = "alloc")]
use crate::orphan::{self, Methods, Orphan};

/// Heads the bookkeeping of a pool in a region: keeps the region until the pool and its last buffer
/// are gone, and counts what was released.
///
/// - The pool writes it into the region that it is made with, and the bookkeeping behind it.
/// - The pool's end [leaves](Self::leave) it: to nobody when all buffers were released, and to the
///   late releases otherwise.
/// - A release that finds the end of its pool [counts itself](Self::release_orphaned).
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
    /// What buffers count when they are released.
    pub released: Released,
    /// Whether the pool zeroes what is released. Not written after the block was made.
    #[cfg(feature = "wipe")]
    pub wipe: bool,
}

/// A pool whose bookkeeping has a [`ControlBlock`] at its head.
///
/// # Safety
///
/// [`count_missed`](Self::count_missed) returns what [`Methods::count_missed`] is to return.
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
    /// Finds the places that were left to their leases, and were freed all the same, once each.
    ///
    /// # Safety
    ///
    /// The block heads the bookkeeping of a pool of this type, which has
    /// [left](ControlBlock::leave) it with so many `places`.
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

    /// Ends the pool's use of the block, of whose `places` it has
    /// [marked](crate::SlotState::orphan) those that buffers hold. Returns the region if they are
    /// none. Otherwise the region is freed with the last of the `marked` places, unless it is
    /// static.
    ///
    /// # Safety
    ///
    /// 1. The block is one that [`new`](Self::new) made for this pool, in its region. It was not
    ///    left before, and the pool does not use it again, nor what is behind it.
    /// 2. `marked` releases are to come, or have come. Each is counted by one
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

    /// Counts the release of a place that was marked before its pool left the block.
    ///
    /// # Safety
    ///
    /// 1. The place's release was not counted before.
    /// 2. Nobody uses the place after this call, nor the block for its sake.
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
