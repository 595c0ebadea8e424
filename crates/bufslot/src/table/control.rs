//! The control block, with which the bookkeeping in a region begins.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bufcore::Region;
use bufcore::author::Released;
#[cfg(feature = "alloc")]
use bufkit::orphan::Orphan;

/// The head of the bookkeeping.
#[repr(C)]
pub(super) struct Control {
    #[cfg(feature = "alloc")]
    pub(super) orphan: Orphan,
    /// The region that this control block is in; moved out before it is dropped.
    pub(super) region: ManuallyDrop<Region>,
    pub(super) released: Released,
    /// Number of slots, without the sentinel.
    pub(super) slots: u32,
    #[cfg(feature = "wipe")]
    pub(super) wipe: bool,
}

/// Moves the region out of the control block that is in it.
///
/// # Safety
///
/// `control` is valid, and is not used again.
pub(super) unsafe fn take_region(control: NonNull<Control>) -> Region {
    // SAFETY: the control block is valid; the copy in it is never dropped (`ManuallyDrop`), so the
    // region has one owner.
    let control = unsafe { control.read() };
    ManuallyDrop::into_inner(control.region)
}
