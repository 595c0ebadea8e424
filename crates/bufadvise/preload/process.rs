//! Calls that end a recording: no exit handler runs after them, or the recorder would not survive them.
//! And the one that unloads code.
//!
//! They do what they do without this library, after the recording is in its file.

use core::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use core::ptr;

use buftrace::hooks;

use crate::real;

/// `PR_SET_SECCOMP`.
const SET_SECCOMP: c_ulong = 22;

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) -> ! {
    buftrace::stop_heap_recording();
    loop {
        // SAFETY: ends the process, as the C library does.
        unsafe { syscall(libc::SYS_exit_group, status.into(), 0, 0, 0, 0, 0) };
    }
}

/// As in the C library.
///
/// # Safety
///
/// Has no conditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: has no conditions.
    unsafe { _exit(status) }
}

/// As in the C library.
///
/// # Safety
///
/// 1. As the system call `option` says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    let [a, b, c, d] = [a, b, c, d].map(|number| number as c_long);
    // SAFETY: as the caller promises (1).
    unsafe { syscall(libc::SYS_prctl, option.into(), a, b, c, d, 0) as c_int }
}

/// As in the C library. A call that restricts the system calls of the program ends the recording
/// first.
///
/// # Safety
///
/// 1. As the system call `number` says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_seccomp || (number == libc::SYS_prctl && a as c_ulong == SET_SECCOMP) {
        hooks::restricted();
    }
    match real::functions() {
        // SAFETY: as the caller promises (1).
        Some(real) => unsafe { (real.syscall)(number, a, b, c, d, e, f) },
        None => refuse().into(),
    }
}

/// As in the C library.
///
/// # Safety
///
/// 1. `library` came from `dlopen`, and nothing of it is used any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    let Some(dlclose) = real::functions().and_then(|real| real.dlclose) else { return refuse() };
    // SAFETY: as the caller promises (1).
    let error = unsafe { dlclose(library) };
    hooks::unloaded();
    error
}

fn refuse() -> c_int {
    // SAFETY: has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's, and writable.
    unsafe { *place = libc::ENOSYS };
    -1
}

/// Takes this library and the recorder's variables out of the environment, so that what this program
/// starts is not recorded. Not by `unsetenv`: a shell has its own, which knows only its own variables.
pub(crate) fn leave_environment() {
    let mut own = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let address: *const () = (leave_environment as fn()) as *const ();
    // SAFETY: `own` is writable.
    if unsafe { libc::dladdr(address.cast(), own.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: it was zeroed, which is a valid value, and then filled.
    let own = unsafe { own.assume_init() };
    // SAFETY: the constructors of libraries run one after the other, before a thread of the program
    // reads the environment.
    let first = unsafe { environ };
    // A program that cleared its environment may have none.
    if own.dli_fname.is_null() || first.is_null() {
        return;
    }
    // SAFETY: the linker keeps the name, with a zero at its end.
    let name = unsafe { CStr::from_ptr(own.dli_fname) }.to_bytes();
    let (mut count, mut kept) = (0, 0);
    let entries = loop {
        // SAFETY: as above; a null ends the entries, and is the last that is read.
        let entries = unsafe { core::slice::from_raw_parts_mut(first, count + 1) };
        if entries[count].is_null() {
            break entries;
        }
        count += 1;
    };
    for at in 0..count {
        let mut entry = entries[at];
        // SAFETY: entries have a zero at their end.
        let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
        if text.starts_with(b"BUFTRACE=") || text.starts_with(b"BUFTRACE_OPTIONS=") {
            continue;
        }
        if let Some(value) = text.strip_prefix(b"LD_PRELOAD=") {
            let paths = value.split(|byte| b": ".contains(byte));
            let others: Vec<&[u8]> = paths.filter(|path| !path.is_empty() && *path != name).collect();
            if others.is_empty() {
                continue;
            }
            // The environment keeps it.
            let text = [b"LD_PRELOAD=", &others.join(&b':')[..], b"\0"].concat().leak();
            entry = text.as_mut_ptr().cast();
        }
        entries[kept] = entry;
        kept += 1;
    }
    entries[kept] = ptr::null_mut();
}

// Not in all versions of the bindings.
unsafe extern "C" {
    static mut environ: *mut *mut c_char;
    pub(crate) safe fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}
