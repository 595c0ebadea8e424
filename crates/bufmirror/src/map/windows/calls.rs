//! The system calls behind a mapping, one function each, so that tests can have each one fail.

use core::mem;
use core::ptr::{self, NonNull};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use bufcore::RegionError;
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFileEx, PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::GetSystemInfo;

/// What [`map_by`](super::map_by) asks of the system.
///
/// # Safety
///
/// When [`map_at`](Self::map_at) returns `Ok`, the section's first bytes are mapped there until
/// [`unmap`](Self::unmap), and nothing else was.
pub(crate) unsafe trait Calls: Copy {
    /// Returns what the addresses of views and reservations are multiples of: a power of two.
    fn granularity(&self) -> usize;

    /// Makes a section of `bytes` zeros, which no file is behind. Programs that this one starts do
    /// not inherit it.
    fn section(&self, bytes: usize) -> Result<OwnedHandle, RegionError>;

    /// Reserves addresses for the caller alone, through which nothing can be read or written.
    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, RegionError>;

    /// Gives back a reservation.
    ///
    /// # Safety
    ///
    /// It starts at `at`, is the caller's, and is not used again.
    unsafe fn release(&self, at: NonNull<u8>);

    /// Maps the section for reading and writing at `at`, where nothing is. It fails where something
    /// is.
    fn map_at(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), RegionError>;

    /// Gives back a view.
    ///
    /// # Safety
    ///
    /// It starts at `at`, is the caller's, and is not used again.
    unsafe fn unmap(&self, at: NonNull<u8>);
}

/// The real ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel;

// SAFETY: the system maps what it says.
unsafe impl Calls for Kernel {
    fn granularity(&self) -> usize {
        // SAFETY: a structure of plain numbers and addresses.
        let mut info = unsafe { mem::zeroed() };
        // SAFETY: the pointer is to a live one.
        unsafe { GetSystemInfo(&raw mut info) };
        info.dwAllocationGranularity as usize
    }

    fn section(&self, bytes: usize) -> Result<OwnedHandle, RegionError> {
        let (high, low) = ((bytes as u64 >> 32) as u32, bytes as u32);
        // SAFETY: no attributes and no name are passed, and this stands for the paging file.
        let section = unsafe {
            CreateFileMappingW(INVALID_HANDLE_VALUE, ptr::null(), PAGE_READWRITE, high, low, ptr::null())
        };
        if section.is_null() {
            return Err(last_error("CreateFileMapping"));
        }
        // SAFETY: just made, and known to nobody else.
        Ok(unsafe { OwnedHandle::from_raw_handle(section) })
    }

    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, RegionError> {
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let base = unsafe { VirtualAlloc(ptr::null(), bytes, MEM_RESERVE, PAGE_NOACCESS) };
        NonNull::new(base.cast()).ok_or_else(|| last_error("VirtualAlloc"))
    }

    unsafe fn release(&self, at: NonNull<u8>) {
        // SAFETY: the caller's, as promised; all of it, as the size of 0 says.
        let released = unsafe { VirtualFree(at.as_ptr().cast(), 0, MEM_RELEASE) };
        debug_assert_ne!(released, 0, "VirtualFree: {}", io::Error::last_os_error());
    }

    fn map_at(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), RegionError> {
        let access = FILE_MAP_READ | FILE_MAP_WRITE;
        // SAFETY: where something is, it fails: nothing is replaced.
        let view = unsafe {
            MapViewOfFileEx(section.as_raw_handle(), access, 0, 0, bytes, at.as_ptr().cast_const().cast())
        };
        if view.Value.is_null() { Err(last_error("MapViewOfFileEx")) } else { Ok(()) }
    }

    unsafe fn unmap(&self, at: NonNull<u8>) {
        // SAFETY: the caller's, as promised.
        let unmapped = unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: at.as_ptr().cast() }) };
        debug_assert_ne!(unmapped, 0, "UnmapViewOfFile: {}", io::Error::last_os_error());
    }
}

/// Returns the error of `call`, which has just failed.
fn last_error(call: &'static str) -> RegionError {
    RegionError::Refused { call, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}
