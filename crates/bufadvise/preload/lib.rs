//! A library for `LD_PRELOAD`: stands in front of the C library's allocator, and records what a
//! program requests from it.
//!
//! Every call goes to the function that would have served it without this library, which `dlsym`
//! finds. `buftrace` notes it. There is nothing in the interface of this library for Rust.
#![cfg(target_os = "linux")]

mod early;
mod process;
mod real;

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use buftrace::hooks::{self, Reallocation};

/// Nothing is recorded before the constructor has run: the C library is complete then.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Run by the dynamic linker, after the constructors of the C library.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = initialise;

extern "C" fn initialise() {
    real::functions();
    hooks::start_from_environment();
    process::leave_environment();
    // The program's handlers run before. Where it cannot be added, the last events are lost.
    let _ = process::at_quick_exit(stop);
    // ORDER: Relaxed: the hooks are sound at any time, and the program's threads come later.
    IS_READY.store(true, Ordering::Relaxed);
}

extern "C" fn stop() {
    buftrace::stop_heap_recording();
}

#[inline]
fn note(memory: *mut c_void, bytes: usize, zeroed: bool) -> *mut c_void {
    // ORDER: Relaxed: as in `initialise`.
    if IS_READY.load(Ordering::Relaxed) {
        hooks::allocated(memory.cast(), bytes, zeroed);
    }
    memory
}

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let Some(real) = real::functions() else { return early::allocate(bytes, early::ALIGN) };
    // SAFETY: has no conditions.
    note(unsafe { (real.malloc)(bytes) }, bytes, false)
}

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, each: usize) -> *mut c_void {
    let Some(real) = real::functions() else {
        // Early memory is zero.
        return count.checked_mul(each).map_or(ptr::null_mut(), |bytes| early::allocate(bytes, early::ALIGN));
    };
    // SAFETY: has no conditions. One that overflows fails.
    let memory = unsafe { (real.calloc)(count, each) };
    note(memory, count.wrapping_mul(each), true)
}

/// As in the C library.
///
/// # Safety
///
/// 1. `memory` is null, or came from this allocator and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    if memory.is_null() || early::has(memory) {
        // Early memory is not used again.
        return;
    }
    let Some(real) = real::functions() else { return };
    hooks::freed(memory.cast());
    // SAFETY: as the caller promises (1); what is not early came from there.
    unsafe { (real.free)(memory) };
}

/// As in the C library.
///
/// # Safety
///
/// 1. As that of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if memory.is_null() {
        // SAFETY: has no conditions.
        return unsafe { malloc(bytes) };
    }
    if early::has(memory) {
        // SAFETY: has no conditions.
        let new = unsafe { malloc(bytes) };
        if !new.is_null() {
            let kept = early::length(memory).min(bytes);
            // SAFETY: both have `kept` bytes, and the new memory is nobody else's.
            unsafe { ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast(), kept) };
        }
        return new;
    }
    let Some(real) = real::functions() else { return ptr::null_mut() };
    if bytes == 0 {
        // Gives the memory back.
        hooks::freed(memory.cast());
        // SAFETY: as the caller promises (1).
        return unsafe { (real.realloc)(memory, 0) };
    }
    // SAFETY: as the caller promises (1).
    let from = unsafe { (real.malloc_usable_size)(memory) };
    let reallocation = Reallocation::begin(memory.cast());
    // SAFETY: as the caller promises (1).
    let new = unsafe { (real.realloc)(memory, bytes) };
    reallocation.end(new.cast(), from, bytes);
    new
}

/// As in the C library.
///
/// # Safety
///
/// 1. `to` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    let Some(real) = real::functions() else {
        if !align.is_power_of_two() || align < size_of::<usize>() {
            return libc::EINVAL;
        }
        let memory = early::allocate(bytes, align);
        if memory.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: as the caller promises (1).
        unsafe { *to = memory };
        return 0;
    };
    // SAFETY: as the caller promises (1).
    let error = unsafe { (real.posix_memalign)(to, align, bytes) };
    if error == 0 {
        // SAFETY: it was written.
        note(unsafe { *to }, bytes, false);
    }
    error
}

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    let Some(real) = real::functions() else { return early::allocate(bytes, align) };
    // SAFETY: has no conditions.
    note(unsafe { (real.aligned_alloc)(align, bytes) }, bytes, false)
}

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    let Some(real) = real::functions() else { return early::allocate(bytes, align) };
    // SAFETY: has no conditions.
    note(unsafe { (real.memalign)(align, bytes) }, bytes, false)
}

/// As in the C library.
///
/// # Safety
///
/// 1. As that of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(memory: *mut c_void) -> usize {
    if memory.is_null() {
        return 0;
    }
    if early::has(memory) {
        return early::length(memory);
    }
    // SAFETY: as the caller promises (1).
    real::functions().map_or(0, |real| unsafe { (real.malloc_usable_size)(memory) })
}
