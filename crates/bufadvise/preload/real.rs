//! The functions that would have been called without this library.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem::{self, MaybeUninit};
use core::sync::atomic::{AtomicU32, Ordering};

const UNKNOWN: u32 = 0;
const SEARCHING: u32 = 1;
const KNOWN: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static FUNCTIONS: Slot = Slot(UnsafeCell::new(MaybeUninit::uninit()));

/// The next allocator's functions.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(crate) calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub(crate) posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
    pub(crate) aligned_alloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) memalign: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) malloc_usable_size: unsafe extern "C" fn(*mut c_void) -> usize,
    pub(crate) syscall: Syscall,
    pub(crate) dlclose: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

/// Its arguments may be of any number. On this system they are where those of a fixed number are.
type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

struct Slot(UnsafeCell<MaybeUninit<Functions>>);

// SAFETY: it is written by the one thread that made the state `SEARCHING`, before it is `KNOWN`,
// and read after that alone.
unsafe impl Sync for Slot {}

/// Returns the functions; `None` while they are being looked for, which may itself allocate.
#[inline]
pub(crate) fn functions() -> Option<&'static Functions> {
    // ORDER: Acquire pairs with the Release in `search`: the functions were written.
    if STATE.load(Ordering::Acquire) != KNOWN && !search() {
        return None;
    }
    // SAFETY: nobody writes any more.
    let slot = unsafe { &*FUNCTIONS.0.get() };
    // SAFETY: the state is `KNOWN`, so it was written.
    Some(unsafe { slot.assume_init_ref() })
}

#[cold]
fn search() -> bool {
    // ORDER: Relaxed on both sides: nothing was published yet.
    if STATE.compare_exchange(UNKNOWN, SEARCHING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        // ORDER: Acquire, as in `functions`: another thread may be done by now.
        return STATE.load(Ordering::Acquire) == KNOWN;
    }
    let found = look();
    let state = if found.is_some() { KNOWN } else { UNKNOWN };
    if let Some(found) = found {
        // SAFETY: this thread alone made the state `SEARCHING`, and nobody reads yet.
        let slot = unsafe { &mut *FUNCTIONS.0.get() };
        slot.write(found);
    }
    // ORDER: Release pairs with the Acquire in `functions`.
    STATE.store(state, Ordering::Release);
    state == KNOWN
}

fn look() -> Option<Functions> {
    let found = Functions {
        // SAFETY: the C standard, or the manual of the C library, has it of this type.
        malloc: unsafe { next(c"malloc") }?,
        // SAFETY: as above.
        calloc: unsafe { next(c"calloc") }?,
        // SAFETY: as above.
        free: unsafe { next(c"free") }?,
        // SAFETY: as above.
        realloc: unsafe { next(c"realloc") }?,
        // SAFETY: as above.
        posix_memalign: unsafe { next(c"posix_memalign") }?,
        // SAFETY: as above.
        aligned_alloc: unsafe { next(c"aligned_alloc") }?,
        // SAFETY: as above.
        memalign: unsafe { next(c"memalign") }?,
        // SAFETY: as above.
        malloc_usable_size: unsafe { next(c"malloc_usable_size") }?,
        // SAFETY: as above.
        syscall: unsafe { next(c"syscall") }?,
        // SAFETY: as above.
        dlclose: unsafe { next(c"dlclose") },
    };
    Some(found)
}

/// The next function of a name, behind this library.
///
/// # Safety
///
/// 1. `F` is the type of a pointer to that function.
unsafe fn next<F>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: of the same size, and of that type, as the caller promises (1).
    Some(unsafe { mem::transmute_copy(&found) })
}
