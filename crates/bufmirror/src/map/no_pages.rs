//! Where no memory can be mapped twice: without an operating system, on one that is
//! neither Unix nor Windows, and under Miri.

use core::convert::Infallible;
#[cfg(feature = "alloc")]
use core::ptr::NonNull;

#[cfg(feature = "alloc")]
use bufcore::RegionError;

/// Pages that are mapped twice: there are none.
pub(crate) struct Pages(#[allow(dead_code, reason = "no value exists")] Infallible);

#[cfg(feature = "alloc")]
impl Pages {
    pub(super) fn base(&self) -> NonNull<u8> {
        match self.0 {}
    }

    pub(super) fn capacity(&self) -> usize {
        match self.0 {}
    }
}

/// Maps nothing, which is no error: the caller copies then.
#[cfg(feature = "alloc")]
pub(super) fn map(_: usize) -> Result<Option<Pages>, RegionError> {
    Ok(None)
}
