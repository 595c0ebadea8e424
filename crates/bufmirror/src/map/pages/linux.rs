//! The calls that only Linux and Android have: anonymous files.

use std::os::fd::{FromRawFd, OwnedFd};

use bufcore::RegionError;

use super::calls::last_error;

/// A reservation needs no memory, and is not to count as if it did.
pub(super) const MAP_NORESERVE: libc::c_int = libc::MAP_NORESERVE;

/// Makes a file in memory by `memfd_create`.
pub(crate) fn memory_file() -> Result<OwnedFd, RegionError> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte and is static.
    let file = unsafe { libc::memfd_create(c"bufmirror".as_ptr(), flags) };
    if file < 0 {
        return Err(last_error("memfd_create"));
    }
    // SAFETY: just opened, and known to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}
