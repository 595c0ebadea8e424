//! What a program needs of the machine when no library is there: an entry, an exit, output, and the four memory functions
//! that compiled code calls.

use core::arch::{asm, global_asm};
use core::fmt;
use core::panic::PanicInfo;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the entry point and the system calls are those of Linux on x86-64");

global_asm!(
    ".global _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16", // as at any call
    "call {run}",
    "ud2",
    run = sym crate::run,
);

const WRITE: usize = 1;
const EXIT_GROUP: usize = 231;

/// # Safety
///
/// What the kernel demands of call `number`.
unsafe fn call(number: usize, a: usize, b: usize, c: usize) -> usize {
    let result;
    // SAFETY: the caller's promise; the kernel changes these registers only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the program.
pub(crate) fn exit(code: i32) -> ! {
    loop {
        // SAFETY: takes no memory; does not return.
        unsafe { call(EXIT_GROUP, code as usize, 0, 0) };
    }
}

/// The text that is written is printed.
pub(crate) struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(text.as_bytes());
        Ok(())
    }
}

/// Prints what the kernel takes of `bytes` at once; a line, on any terminal or pipe.
pub(crate) fn print(bytes: &[u8]) {
    // SAFETY: reads `bytes` only.
    unsafe { call(WRITE, 1, bytes.as_ptr() as usize, bytes.len()) };
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    print(b"nostd-check: panicked\n");
    exit(255)
}

/// # Safety
///
/// As C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; the direction flag is clear on every call.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    to
}

/// # Safety
///
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= bytes {
        // SAFETY: the caller's promise, and the target does not start within the source.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: the caller's promise; from the last byte down, and the direction flag is put back.
    unsafe {
        asm!(
            "std",
            "rep movsb",
            "cld",
            inout("rcx") bytes => _,
            inout("rdi") to.wrapping_add(bytes).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(bytes).wrapping_sub(1) => _,
            options(nostack),
        );
    }
    to
}

/// # Safety
///
/// As C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; the direction flag is clear on every call.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags),
        );
    }
    to
}

/// # Safety
///
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for at in 0..bytes {
        // SAFETY: the caller's promise. Volatile, so that the loop is not made a call of `memcmp`.
        let left = unsafe { a.wrapping_add(at).read_volatile() };
        // SAFETY: likewise.
        let right = unsafe { b.wrapping_add(at).read_volatile() };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

/// # Safety
///
/// As `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, bytes) }
}
