//! The calls that only Linux and Android have: anonymous files, huge pages, mappings that are not
//! inherited.

use core::ptr::NonNull;
use std::os::fd::{FromRawFd, OwnedFd};

use super::calls::{done, last_error};
use crate::MapError;

/// A reservation needs no memory, and is not to count as if it did.
pub(super) const MAP_NORESERVE: libc::c_int = libc::MAP_NORESERVE;

/// Makes a file in memory by `memfd_create`.
pub(super) fn memory_file(huge: bool) -> Result<OwnedFd, MapError> {
    let pages = if huge { libc::MFD_HUGETLB | libc::MFD_HUGE_2MB } else { 0 };
    // SAFETY: the name ends with a zero byte and is static.
    let file = unsafe { libc::memfd_create(c"bufmirror".as_ptr(), libc::MFD_CLOEXEC | pages) };
    if file < 0 {
        return Err(last_error("memfd_create"));
    }
    // SAFETY: just opened, and known to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Asks for huge pages where the kernel would give some to a file in memory.
pub(super) fn advise_huge(at: NonNull<u8>, bytes: usize) -> Result<(), MapError> {
    advise(at, bytes, libc::MADV_HUGEPAGE)
}

/// Keeps the ring from forked processes, which would otherwise have the very same ring.
pub(super) fn dont_fork(at: NonNull<u8>, bytes: usize) -> Result<(), MapError> {
    advise(at, bytes, libc::MADV_DONTFORK)
}

fn advise(at: NonNull<u8>, bytes: usize, advice: libc::c_int) -> Result<(), MapError> {
    // SAFETY: neither advice changes what the memory holds, here; wherever it is, it is the
    // caller's.
    done("madvise", unsafe { libc::madvise(at.as_ptr().cast(), bytes, advice) })
}
