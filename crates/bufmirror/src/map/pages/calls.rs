//! The system calls behind a mapping, one function each, so that tests can have each one fail.
//!
//! A file in memory is made by `system`, which every Unix has in its own way.

use core::ptr::{self, NonNull};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bufcore::RegionError;

use super::system;
pub(crate) use super::system::memory_file;

/// Returns the bytes of an ordinary page: a power of two.
pub(crate) fn page_bytes() -> Result<usize, RegionError> {
    // SAFETY: no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).ok_or_else(|| last_error("sysconf"))
}

/// Gives a new file its size; its bytes are zero.
pub(crate) fn set_len(file: &OwnedFd, bytes: usize) -> Result<(), RegionError> {
    let length = libc::off_t::try_from(bytes).map_err(|_| RegionError::TooLarge { requested: bytes })?;
    // SAFETY: no memory is passed.
    done("ftruncate", unsafe { libc::ftruncate(file.as_raw_fd(), length) })
}

/// Reserves addresses for the caller alone, through which nothing can be read or written.
pub(super) fn reserve(bytes: usize) -> Result<NonNull<u8>, RegionError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | system::MAP_NORESERVE;
    // SAFETY: at an address of the system's choice, so that nothing is replaced.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    mapped(at)
}

/// Maps the file, from `offset` on, at `at`, for reading and writing, instead of what is there.
///
/// # Safety
///
/// `bytes` from `at` on are whole pages of the caller's, of which nothing is lent.
pub(super) unsafe fn map_shared(
    at: NonNull<u8>,
    bytes: usize,
    file: &OwnedFd,
    offset: usize,
) -> Result<(), RegionError> {
    let offset = libc::off_t::try_from(offset).map_err(|_| RegionError::TooLarge { requested: offset })?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: what is replaced is the caller's, and not lent, as promised.
    let found = unsafe { libc::mmap(at.as_ptr().cast(), bytes, access, flags, file.as_raw_fd(), offset) };
    mapped(found).map(|found| debug_assert_eq!(found, at))
}

/// Gives addresses back, with what is mapped there.
///
/// # Safety
///
/// As for [`map_shared`]; none of them is used again.
pub(super) unsafe fn unmap(at: NonNull<u8>, bytes: usize) -> Result<(), RegionError> {
    // SAFETY: the caller's, and not used again, as promised.
    done("munmap", unsafe { libc::munmap(at.as_ptr().cast(), bytes) })
}

/// Returns the address that `mmap` returned, or its error.
fn mapped(at: *mut libc::c_void) -> Result<NonNull<u8>, RegionError> {
    NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED).ok_or_else(|| last_error("mmap"))
}

/// Returns the error of a call that returns 0 or fails, if it failed.
pub(crate) fn done(call: &'static str, returned: libc::c_int) -> Result<(), RegionError> {
    if returned == 0 { Ok(()) } else { Err(last_error(call)) }
}

/// Returns the error of `call`, which has just failed.
pub(crate) fn last_error(call: &'static str) -> RegionError {
    error_of(call, &io::Error::last_os_error())
}

pub(crate) fn error_of(call: &'static str, error: &io::Error) -> RegionError {
    RegionError::Refused { call, errno: error.raw_os_error().unwrap_or(0) }
}
