//! The file: made, checked, opened once more, locked.

use core::mem;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use bufcore::{RegionError, size};

use super::ShareError;
use crate::map::pages::calls::{done, error_of, last_error, memory_file, page_bytes, set_len};
use crate::map::whole_pages;

/// Bytes in front of the ring: as many as the largest page of a Linux system has, so that both can
/// be mapped on each.
pub(super) const HEADER_BYTES: usize = 64 << 10;
/// Bytes of the header in front of what the ends share.
pub(super) const PREAMBLE_BYTES: usize = 128;
/// What the file starts with: a name, a version, and the word size.
const MAGIC: [u8; 16] = *b"bufmirror ring\x01\x08";

/// An open file that holds a ring (S1).
#[derive(Debug)]
pub(super) struct SharedFile {
    pub(super) file: OwnedFd,
    /// Bytes of the ring: whole pages.
    pub(super) capacity: usize,
}

impl SharedFile {
    pub(super) fn create(capacity: usize) -> Result<Self, ShareError> {
        if capacity == 0 {
            return Err(RegionError::Empty.into());
        }
        let capacity = whole_pages(capacity, page_bytes()?)?;
        let file = memory_file()?;
        set_len(&file, capacity + HEADER_BYTES)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: no memory is passed.
        done("fcntl", unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        let file = File::from(file);
        file.write_all_at(&MAGIC, 0).map_err(|error| error_of("pwrite", &error))?;
        Ok(Self { file: file.into(), capacity })
    }

    pub(super) fn open(file: OwnedFd) -> Result<Self, ShareError> {
        // SAFETY: no memory is passed.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // -1 for what is no file in memory. Sealed first, so that what is read of the size
        // afterwards stays.
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(ShareError::NotARing);
        }
        let file = File::from(file);
        let mut found = [0; MAGIC.len()];
        let read = file.read_exact_at(&mut found, 0);
        let bytes = file.metadata().map_err(|error| error_of("fstat", &error))?.len();
        let capacity = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(HEADER_BYTES);
        let fits = capacity != 0 && capacity <= size::MAX_BYTES / 2 && capacity % page_bytes()? == 0;
        if read.is_err() || found != MAGIC || !fits {
            return Err(ShareError::NotARing);
        }
        Ok(Self { file: file.into(), capacity })
    }

    /// Opens the same file anew: locks belong to an opening (S2), and a descriptor that was handed
    /// over shares its giver's.
    pub(super) fn reopen(&self) -> Result<Self, ShareError> {
        let path = std::format!("/proc/self/fd/{}", self.file.as_raw_fd());
        // The standard library's files are closed in programs that are started.
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| error_of("open", &error))?;
        Ok(Self { file: file.into(), capacity: self.capacity })
    }

    /// Takes an end, until the file is closed.
    pub(super) fn lock(&self, producer: bool) -> Result<(), ShareError> {
        let mut lock = one_byte(producer);
        // SAFETY: the kernel reads the structure during the call.
        let locked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        if locked == 0 {
            return Ok(());
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Err(ShareError::Taken),
            _ => Err(last_error("fcntl").into()),
        }
    }

    /// Returns whether another opening of the file has this end. Where the system does not say, it
    /// has.
    pub(super) fn is_locked(&self, producer: bool) -> bool {
        let mut lock = one_byte(producer);
        // SAFETY: the kernel reads and writes the structure during the call.
        let asked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        asked != 0 || i32::from(lock.l_type) != libc::F_UNLCK
    }
}

/// Makes a lock of the byte of one end, for writing.
fn one_byte(producer: bool) -> libc::flock {
    // SAFETY: a plain structure of numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = i64::from(!producer);
    lock.l_len = 1;
    lock
}
