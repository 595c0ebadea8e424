//! Unix systems without anonymous files: POSIX shared memory whose name goes at once.
//!
//! Type-checked, but not run by our tests.

use alloc::ffi::CString;
use alloc::format;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process;

use bufcore::RegionError;

use super::calls::{done, last_error};

/// Not needed: what cannot be written is not counted.
pub(super) const MAP_NORESERVE: libc::c_int = 0;

/// Names that are tried. One is taken only while another thread is between the two calls below, or
/// where a process of the same number died there.
const NAMES: u32 = 1000;

/// Makes a shared memory object, without its name from the start. The system closes it when another
/// program is started.
pub(crate) fn memory_file() -> Result<OwnedFd, RegionError> {
    let mut failed = RegionError::Refused { call: "shm_open", errno: libc::EEXIST };
    for attempt in 0..NAMES {
        // At most 27 characters: macOS has room for 31.
        let Ok(name) = CString::new(format!("/bufmirror-{}-{attempt}", process::id())) else { continue };
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        // SAFETY: the name ends with a zero byte and lives until after the call.
        let file = unsafe { libc::shm_open(name.as_ptr(), flags, 0o600) };
        if file < 0 {
            failed = last_error("shm_open");
            if matches!(failed, RegionError::Refused { errno: libc::EEXIST, .. }) {
                continue;
            }
            break;
        }
        // SAFETY: just opened, and known to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: as above.
        done("shm_unlink", unsafe { libc::shm_unlink(name.as_ptr()) })?;
        return Ok(file);
    }
    Err(failed)
}
