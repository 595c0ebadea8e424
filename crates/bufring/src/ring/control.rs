//! The control block, with which the bookkeeping in a region begins.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bufcore::Region;
use bufcore::author::Released;
#[cfg(feature = "alloc")]
use bufkit::orphan::Orphan;

use super::guard::UNIT;
#[cfg(feature = "alloc")]
use super::orphaned::METHODS;

/// The head of the bookkeeping.
#[repr(C)]
pub(super) struct Control {
    #[cfg(feature = "alloc")]
    pub(super) orphan: Orphan,
    /// The region that this block is in; moved out before it is dropped.
    pub(super) region: ManuallyDrop<Region>,
    pub(super) released: Released,
    #[cfg(feature = "wipe")]
    pub(super) wipe: bool,
}

impl Control {
    /// Makes the control block of a ring in `region`.
    pub(super) fn new(region: Region, wipe: bool) -> Self {
        #[cfg(not(feature = "wipe"))]
        let _ = wipe;
        Self {
            #[cfg(feature = "alloc")]
            orphan: Orphan::counted(&METHODS),
            region: ManuallyDrop::new(region),
            released: Released::default(),
            #[cfg(feature = "wipe")]
            wipe,
        }
    }
}

/// Bytes from the control block to the guard at the front, which stands right behind it.
pub(super) const CONTROL: usize = size_of::<Control>().next_multiple_of(UNIT);
const _: () = assert!(
    align_of::<Control>() <= align_of::<super::guard::Guard>(),
    "in front of a guard a control block is aligned"
);

/// Moves the region out of the control block that is in it.
///
/// # Safety
///
/// `control` is valid, and is not used again.
pub(super) unsafe fn take_region(control: NonNull<Control>) -> Region {
    // SAFETY: the block is valid; the copy in it is never dropped (`ManuallyDrop`), so the region
    // has one owner.
    let control = unsafe { control.read() };
    ManuallyDrop::into_inner(control.region)
}
