//! The file: made, checked, opened once more, locked.

use core::mem;
use core::ptr::NonNull;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use bufcore::size;

use super::ShareError;
use crate::MapError;

/// Bytes in front of the ring: as many as the largest page of a Linux system has, so that both can
/// be mapped on each.
pub(super) const HEADER_BYTES: usize = 64 << 10;
/// Bytes of the header in front of what the ends share.
pub(super) const PREAMBLE_BYTES: usize = 128;
/// What the file starts with: a name, a version, and the word size.
const MAGIC: [u8; 16] = *b"bufmirror ring\x01\x08";

/// An end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    Producer,
    Consumer,
}

impl Seat {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Producer => Self::Consumer,
            Self::Consumer => Self::Producer,
        }
    }

    /// Returns the byte of the file that the owner of the end has locked.
    fn byte(self) -> i64 {
        match self {
            Self::Producer => 0,
            Self::Consumer => 1,
        }
    }
}

/// An open file that holds a ring (S1).
#[derive(Debug)]
pub(super) struct SharedFile {
    file: OwnedFd,
    /// Bytes of the ring: whole pages.
    capacity: usize,
}

impl SharedFile {
    pub(super) fn create(capacity: usize) -> Result<Self, ShareError> {
        let too_large = MapError::TooLarge { requested: capacity };
        if capacity == 0 {
            return Err(MapError::Empty.into());
        }
        let capacity = size::align_up(capacity, page_bytes()?).ok_or(too_large)?;
        // Twice, as it is mapped.
        let span = capacity.checked_mul(2).filter(|&span| span <= size::MAX_BYTES - HEADER_BYTES);
        let bytes = span.map(|_| capacity + HEADER_BYTES).ok_or(too_large)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with a zero byte and is static.
        let file = unsafe { libc::memfd_create(c"bufmirror".as_ptr(), flags) };
        if file < 0 {
            return Err(refused("memfd_create"));
        }
        // SAFETY: just opened, and known to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let length = libc::off_t::try_from(bytes).map_err(|_| too_large)?;
        // SAFETY: no memory is passed.
        done("ftruncate", unsafe { libc::ftruncate(file.as_raw_fd(), length) })?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: no memory is passed.
        done("fcntl", unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        let file = File::from(file);
        file.write_all_at(&MAGIC, 0).map_err(|error| refused_by("pwrite", &error))?;
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
        let bytes = file.metadata().map_err(|error| refused_by("fstat", &error))?.len();
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
        let file = file.map_err(|error| refused_by("open", &error))?;
        Ok(Self { file: file.into(), capacity: self.capacity })
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn as_owned(&self) -> &OwnedFd {
        &self.file
    }

    pub(super) fn into_owned(self) -> OwnedFd {
        self.file
    }

    /// Takes an end, until the file is closed.
    pub(super) fn lock(&self, seat: Seat) -> Result<(), ShareError> {
        let mut lock = one_byte(seat);
        // SAFETY: the kernel reads the structure during the call.
        let locked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        if locked == 0 {
            return Ok(());
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Err(ShareError::Taken),
            _ => Err(refused("fcntl")),
        }
    }

    /// Returns whether another opening of the file has this end. Where the system does not say, it
    /// has.
    pub(super) fn is_locked(&self, seat: Seat) -> bool {
        let mut lock = one_byte(seat);
        // SAFETY: the kernel reads and writes the structure during the call.
        let asked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        asked != 0 || i32::from(lock.l_type) != libc::F_UNLCK
    }
}

/// Makes a lock of one end, for writing.
fn one_byte(seat: Seat) -> libc::flock {
    // SAFETY: a plain structure of numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = seat.byte();
    lock.l_len = 1;
    lock
}

/// The header's page, mapped.
#[derive(Debug)]
pub(super) struct HeaderPage {
    base: NonNull<u8>,
}

impl HeaderPage {
    pub(super) fn map(file: &OwnedFd) -> Result<Self, ShareError> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let file = file.as_raw_fd();
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let at =
            unsafe { libc::mmap(core::ptr::null_mut(), HEADER_BYTES, access, libc::MAP_SHARED, file, 0) };
        NonNull::new(at.cast())
            .filter(|_| at != libc::MAP_FAILED)
            .map(|base| Self { base })
            .ok_or_else(|| refused("mmap"))
    }

    /// Returns the first byte of `HEADER_BYTES`.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for HeaderPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and used through this value only.
        let unmapped = unsafe { libc::munmap(self.base.as_ptr().cast(), HEADER_BYTES) };
        debug_assert_eq!(unmapped, 0);
    }
}

// SAFETY: the page is this value's, and what it gives out is an address.
unsafe impl Send for HeaderPage {}
// SAFETY: as above.
unsafe impl Sync for HeaderPage {}

fn page_bytes() -> Result<usize, ShareError> {
    // SAFETY: no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).ok_or_else(|| refused("sysconf"))
}

fn done(call: &'static str, returned: libc::c_int) -> Result<(), ShareError> {
    if returned == 0 { Ok(()) } else { Err(refused(call)) }
}

/// Returns the error of `call`, which has just failed.
fn refused(call: &'static str) -> ShareError {
    refused_by(call, &io::Error::last_os_error())
}

fn refused_by(call: &'static str, error: &io::Error) -> ShareError {
    MapError::Refused { call, errno: error.raw_os_error().unwrap_or(0) }.into()
}
