//! Tells the process that made a driver from its forked children; see [`Mark`].

use std::io;

use bufcore::{MapOptions, Region};

use crate::Refused;

/// A page that is zero in forked children, and is not in the process that made it.
///
/// To ask the system for the number of the process would be a call for each operation.
pub(crate) struct Mark(Region);

impl Mark {
    /// Makes a mark of this process.
    pub(crate) fn new() -> Result<Self, Refused> {
        let page = Region::mapped(1, MapOptions::new())
            .map_err(|_| Refused { call: "mmap", errno: libc::ENOMEM })?;
        let start = page.as_ptr().as_ptr();
        // SAFETY: whole pages of a private anonymous mapping, which this process keeps as they are.
        if unsafe { libc::madvise(start.cast(), page.len(), libc::MADV_WIPEONFORK) } != 0 {
            return Err(Refused::new("madvise", &io::Error::last_os_error()));
        }
        // SAFETY: the region's first byte.
        unsafe { start.write(1) };
        Ok(Self(page))
    }

    /// Whether this process made the mark.
    pub(crate) fn is_own(&self) -> bool {
        // SAFETY: the region's first byte, which is initialised and only read from here on.
        unsafe { self.0.as_ptr().as_ptr().read_volatile() != 0 }
    }
}
