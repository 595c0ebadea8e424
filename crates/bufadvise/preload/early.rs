//! Memory for requests that come while the real allocator is being looked for: `dlsym` may
//! allocate.
//!
//! It is a few kilobytes in this library, and is not used again.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Every address is a multiple of this at least.
pub(crate) const ALIGN: usize = 16;
/// In front of each piece: its length.
const HEADER_BYTES: usize = ALIGN;
const ROOM_BYTES: usize = 64 << 10;

#[repr(align(4096))]
struct Room(UnsafeCell<[u8; ROOM_BYTES]>);

// SAFETY: each piece is handed out once, to one caller.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; ROOM_BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

fn start() -> *mut u8 {
    ROOM.0.get().cast()
}

/// Returns zeroed memory, or null when there is none left.
#[cold]
pub(crate) fn allocate(bytes: usize, align: usize) -> *mut c_void {
    let place = |used: usize| {
        let start = used.checked_add(HEADER_BYTES)?.checked_next_multiple_of(align.max(ALIGN))?;
        let end = start.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
        (align <= 4096 && end <= ROOM_BYTES).then_some((start, end))
    };
    // ORDER: Relaxed: pieces do not overlap, and each is given to one caller alone.
    let used = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(place(used)?.1));
    let Some((at, _)) = used.ok().and_then(place) else { return ptr::null_mut() };
    let memory = start().wrapping_add(at);
    let header = memory.wrapping_sub(HEADER_BYTES).cast::<usize>();
    // SAFETY: in the room, in front of the piece and behind the one before, and aligned to 16.
    unsafe { header.write(bytes) };
    memory.cast()
}

/// Whether memory came from here.
#[inline]
pub(crate) fn has(memory: *mut c_void) -> bool {
    memory.addr().wrapping_sub(start().addr()) < ROOM_BYTES
}

/// Returns the length of memory that came from here.
pub(crate) fn length(memory: *mut c_void) -> usize {
    if !has(memory) || memory.addr() < start().addr() + HEADER_BYTES || !memory.addr().is_multiple_of(ALIGN) {
        return 0;
    }
    let header = memory.cast::<u8>().wrapping_sub(HEADER_BYTES).cast::<usize>();
    // SAFETY: in the room and aligned, as was looked at. It was written by `allocate`, or is zero.
    unsafe { header.read() }
}
