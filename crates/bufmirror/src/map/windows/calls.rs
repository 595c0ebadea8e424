//! The system calls behind a mapping, one function each, so that tests can have each one fail.

use core::ffi::c_void;
use core::mem;
use core::ptr::{self, NonNull};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEM_PRESERVE_PLACEHOLDER, MEM_RELEASE,
    MEM_REPLACE_PLACEHOLDER, MEM_RESERVE, MEM_RESERVE_PLACEHOLDER, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFileEx, PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::GetSystemInfo;
use windows_sys::core::PCSTR;
use windows_sys::{s, w};

use crate::MapError;

/// What [`map_by`](super::map_by) asks of the system.
pub(in crate::map) trait Calls: Copy {
    /// Returns what the addresses of views and reservations are multiples of: a power of two.
    fn granularity(&self) -> usize;

    /// Makes a section of `bytes` zeros, which no file is behind. Programs that this one starts do
    /// not inherit it.
    fn section(&self, bytes: usize) -> Result<OwnedHandle, MapError>;

    /// Reserves two placeholders of `bytes` each in a row, for the caller alone.
    fn reserve_placeholders(&self, bytes: usize) -> Result<NonNull<u8>, MapError>;

    /// Maps the section for reading and writing in the place of the placeholder at `at`.
    ///
    /// # Safety
    ///
    /// It is the caller's, and has `bytes` bytes.
    unsafe fn replace(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), MapError>;

    /// Reserves addresses for the caller alone, through which nothing can be read or written.
    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, MapError>;

    /// Gives back a reservation or a placeholder.
    ///
    /// # Safety
    ///
    /// It starts at `at`, is the caller's, and is not used again.
    unsafe fn release(&self, at: NonNull<u8>);

    /// Maps the section for reading and writing at `at`, where nothing is. It fails where something
    /// is.
    fn map_at(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), MapError>;

    /// Gives back a view.
    ///
    /// # Safety
    ///
    /// It starts at `at`, is the caller's, and is not used again.
    unsafe fn unmap(&self, at: NonNull<u8>);
}

/// The real ones.
#[derive(Debug, Clone, Copy)]
pub(in crate::map) struct Kernel;

/// `VirtualAlloc2`: process, address, bytes, kind, protection, and no parameters.
type VirtualAlloc2 =
    unsafe extern "system" fn(HANDLE, *const c_void, usize, u32, u32, *mut c_void, u32) -> *mut c_void;
/// `MapViewOfFile3`: section, process, address, offset, bytes, kind, protection, and no parameters.
type MapViewOfFile3 = unsafe extern "system" fn(
    HANDLE,
    HANDLE,
    *const c_void,
    u64,
    usize,
    u32,
    u32,
    *mut c_void,
    u32,
) -> *mut c_void;

impl Calls for Kernel {
    fn granularity(&self) -> usize {
        // SAFETY: a structure of plain numbers and addresses.
        let mut info = unsafe { mem::zeroed() };
        // SAFETY: the pointer is to a live one.
        unsafe { GetSystemInfo(&raw mut info) };
        info.dwAllocationGranularity as usize
    }

    fn section(&self, bytes: usize) -> Result<OwnedHandle, MapError> {
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

    fn reserve_placeholders(&self, bytes: usize) -> Result<NonNull<u8>, MapError> {
        let found = newer(s!("VirtualAlloc2")).ok_or_else(|| last_error("VirtualAlloc2"))?;
        // SAFETY: the function of this name has this type.
        let alloc = unsafe { mem::transmute::<Newer, VirtualAlloc2>(found) };
        let kind = MEM_RESERVE | MEM_RESERVE_PLACEHOLDER;
        // SAFETY: in this process, at an address of the system's choice, so that nothing is
        // replaced. There are no parameters.
        let base = unsafe {
            alloc(ptr::null_mut(), ptr::null(), 2 * bytes, kind, PAGE_NOACCESS, ptr::null_mut(), 0)
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| last_error("VirtualAlloc2"))?;
        // SAFETY: the first half of a placeholder of ours, which is cut into two.
        let cut = unsafe { VirtualFree(base.as_ptr().cast(), bytes, MEM_RELEASE | MEM_PRESERVE_PLACEHOLDER) };
        if cut == 0 {
            let error = last_error("VirtualFree");
            // SAFETY: one placeholder of ours still.
            unsafe { self.release(base) };
            return Err(error);
        }
        Ok(base)
    }

    unsafe fn replace(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), MapError> {
        let found = newer(s!("MapViewOfFile3")).ok_or_else(|| last_error("MapViewOfFile3"))?;
        // SAFETY: the function of this name has this type.
        let map = unsafe { mem::transmute::<Newer, MapViewOfFile3>(found) };
        let (section, kind) = (section.as_raw_handle(), MEM_REPLACE_PLACEHOLDER);
        let (place, access) = (at.as_ptr().cast(), PAGE_READWRITE);
        // SAFETY: in this process; what is replaced is a placeholder of the caller's, as promised.
        // There are no parameters.
        let view =
            unsafe { map(section, ptr::null_mut(), place, 0, bytes, kind, access, ptr::null_mut(), 0) };
        if view.is_null() { Err(last_error("MapViewOfFile3")) } else { Ok(()) }
    }

    fn reserve(&self, bytes: usize) -> Result<NonNull<u8>, MapError> {
        // SAFETY: at an address of the system's choice, so that nothing is replaced.
        let base = unsafe { VirtualAlloc(ptr::null(), bytes, MEM_RESERVE, PAGE_NOACCESS) };
        NonNull::new(base.cast()).ok_or_else(|| last_error("VirtualAlloc"))
    }

    unsafe fn release(&self, at: NonNull<u8>) {
        // SAFETY: the caller's, as promised; all of it, as the size of 0 says.
        let released = unsafe { VirtualFree(at.as_ptr().cast(), 0, MEM_RELEASE) };
        debug_assert_ne!(released, 0, "VirtualFree: {}", io::Error::last_os_error());
    }

    fn map_at(&self, at: NonNull<u8>, section: &OwnedHandle, bytes: usize) -> Result<(), MapError> {
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

/// A function that only newer systems have.
type Newer = unsafe extern "system" fn() -> isize;

/// Finds a function of this name. Linked in the ordinary way, no program would start on a system
/// without it.
fn newer(name: PCSTR) -> Option<Newer> {
    // SAFETY: a name that ends with a zero.
    let library = unsafe { GetModuleHandleW(w!("kernelbase.dll")) };
    if library.is_null() {
        return None;
    }
    // SAFETY: a library that stays, and a name that ends with a zero.
    unsafe { GetProcAddress(library, name) }
}

/// Returns the error of `call`, which has just failed.
fn last_error(call: &'static str) -> MapError {
    MapError::Refused { call, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}
