//! One section of memory, mapped twice in a row, on Windows.
//!
//! 1. `section`: memory that has a size, and no address yet.
//! 2. `reserve` finds addresses for both views, and `release` gives them back. `map_at` maps the
//!    section there, twice. It fails if another thread took the addresses in between. Then it is
//!    tried again.
//! 3. The section is closed: the views keep it.
//!
//! A step that fails undoes what was done before, by the drops of the section and of a [`View`].

#[path = "windows/calls.rs"]
mod calls;
#[cfg(test)]
#[path = "windows/tests.rs"]
mod tests;

use core::ptr::NonNull;
use std::os::windows::io::OwnedHandle;

use bufcore::RegionError;

use self::calls::{Calls, Kernel};
use super::whole_pages;

/// How often addresses are looked for. Others take them in between only while they map or allocate
/// much.
const TRIES: usize = 100;

/// A section's pages, mapped twice in a row.
pub(crate) struct Pages<C: Calls = Kernel> {
    first: View<C>,
    #[allow(dead_code, reason = "kept for its Drop")]
    second: View<C>,
    /// Bytes of one view.
    capacity: usize,
}

/// Maps at least `bytes`, which are not 0. Never without a result here; where nothing can be mapped
/// there is none.
pub(super) fn map(bytes: usize) -> Result<Option<Pages>, RegionError> {
    map_by(Kernel, bytes).map(Some)
}

/// Maps as [`map`] does, by other means than the system's, for tests.
fn map_by<C: Calls>(calls: C, bytes: usize) -> Result<Pages<C>, RegionError> {
    let capacity = whole_pages(bytes, calls.granularity())?;
    let section = calls.section(capacity)?;
    Pages::over_free_addresses(calls, &section, capacity)
}

impl<C: Calls> Pages<C> {
    fn over_free_addresses(calls: C, section: &OwnedHandle, capacity: usize) -> Result<Self, RegionError> {
        let mut refused = RegionError::OutOfMemory { requested: capacity };
        for _ in 0..TRIES {
            let base = calls.reserve(2 * capacity)?;
            // SAFETY: just reserved, and not used.
            unsafe { calls.release(base) };
            let view = |at| calls.map_at(at, section, capacity).map(|()| View { calls, at });
            // The addresses are within what was reserved. What they point to is decided below.
            let second = base.map_addr(|address| address.saturating_add(capacity));
            match view(base).and_then(|first| Ok((first, view(second)?))) {
                Ok((first, second)) => return Ok(Self { first, second, capacity }),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Returns the first byte of the first mapping.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.first.at
    }

    /// Returns the bytes of one mapping.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

/// A mapping of the section; unmapped when it drops.
struct View<C: Calls> {
    calls: C,
    at: NonNull<u8>,
}

impl<C: Calls> Drop for View<C> {
    fn drop(&mut self) {
        // SAFETY: this one's own; what was lent from it is gone, or was never lent.
        unsafe { self.calls.unmap(self.at) };
    }
}
