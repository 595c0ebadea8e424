//! Unix: private anonymous mappings.

use core::ptr::{self, NonNull};

use super::Outcome;

#[cfg(any(target_os = "linux", target_os = "android"))]
const NO_RESERVE: libc::c_int = libc::MAP_NORESERVE;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const NO_RESERVE: libc::c_int = 0;

/// Maps at addresses where nothing is, or nowhere.
#[cfg(target_os = "linux")]
const WHERE_NOTHING_IS: Option<libc::c_int> = Some(libc::MAP_FIXED_NOREPLACE);
#[cfg(not(target_os = "linux"))]
const WHERE_NOTHING_IS: Option<libc::c_int> = None;

pub(crate) fn page_bytes() -> usize {
    // SAFETY: it takes a number, and touches none of our memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).map_or(0, |bytes| bytes.max(4096))
}

fn map(at: *mut u8, bytes: usize, fixed: libc::c_int) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | NO_RESERVE | fixed;
    // SAFETY: with `MAP_FIXED` the callers own these addresses, and nobody uses what is there.
    let start = unsafe { libc::mmap(at.cast(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    if !at.is_null() && start != at.cast() {
        // A kernel before 4.17 takes `MAP_FIXED_NOREPLACE` for a wish.
        // SAFETY: the mapping that was just made.
        unsafe { libc::munmap(start, bytes) };
        return None;
    }
    // With huge pages the system gives 2 MiB where one page is touched, which nobody counted.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the mapping that was just made. A hint, which a kernel without huge pages refuses.
    let _ = unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    NonNull::new(start.cast())
}

/// Returns whether the system would give so much memory to a program that asks for it as usual:
/// what is reserved is no promise.
pub(crate) fn has(bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a mapping at addresses that nobody has.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    // SAFETY: what was just mapped, which nobody knows of.
    start != libc::MAP_FAILED && unsafe { libc::munmap(start, bytes) } == 0
}

pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(ptr::null_mut(), bytes, 0)
}

/// Unmaps. Where the system refuses, the pages go all the same.
///
/// # Safety
///
/// From `reserve`, without what is lost of it, and not used again.
pub(crate) unsafe fn release(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    if unsafe { libc::munmap(start.as_ptr().cast(), bytes) } != 0 {
        // SAFETY: likewise.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }
}

/// Nothing is to be done.
///
/// # Safety
///
/// None.
pub(crate) unsafe fn commit(_: NonNull<u8>, _: usize) -> bool {
    true
}

/// Gives pages back, where the system does that in place.
///
/// # Safety
///
/// Mapped pages of a reservation, of which nobody uses what is in them.
pub(crate) unsafe fn discard(start: NonNull<u8>, bytes: usize) -> bool {
    // Elsewhere the advice does not promise zeros.
    cfg!(any(target_os = "linux", target_os = "android"))
        // SAFETY: the caller's promise.
        && unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) } == 0
}

/// Gives pages back.
///
/// # Safety
///
/// As for `discard`.
pub(crate) unsafe fn give_back(start: NonNull<u8>, bytes: usize) -> Outcome {
    // SAFETY: the caller's promise.
    if unsafe { discard(start, bytes) } {
        return Outcome::Done;
    }
    // SAFETY: likewise.
    unsafe { renew(start, bytes) }
}

/// Gives pages back with their mapping made anew, which joins it with those around.
///
/// # Safety
///
/// As for `discard`.
pub(crate) unsafe fn renew(start: NonNull<u8>, bytes: usize) -> Outcome {
    if map(start.as_ptr(), bytes, libc::MAP_FIXED).is_some() || was_unmapped(start, bytes) {
        Outcome::Done
    } else {
        Outcome::Lost
    }
}

/// Maps what the system unmapped before it refused. Returns `false` where something is mapped: that
/// may be what was there, and may be another thread's (Y1).
fn was_unmapped(start: NonNull<u8>, bytes: usize) -> bool {
    WHERE_NOTHING_IS.is_some_and(|flag| map(start.as_ptr(), bytes, flag).is_some())
}

/// Returns whether pages are of one mapping, so that the system moves all of them or none. From
/// Linux 6.17 on a call moves those of several mappings one after the other, and may fail when some
/// of them came.
///
/// # Safety
///
/// Mapped pages of a reservation.
#[cfg(target_os = "linux")]
unsafe fn is_one_mapping(start: NonNull<u8>, bytes: usize) -> bool {
    // What is mapped behind is in the way, so that all that the call does is to look.
    // SAFETY: the caller's promise; nothing moves without the flag for that.
    let grown = unsafe { libc::mremap(start.as_ptr().cast(), bytes, bytes + 1, 0) };
    if grown != libc::MAP_FAILED {
        // Nothing was: the last page of the reservation, or addresses that are lost.
        // SAFETY: the page that was just mapped.
        unsafe { libc::munmap(start.as_ptr().add(bytes).cast(), 1) };
        return true;
    }
    let error = std::io::Error::last_os_error().raw_os_error();
    matches!(error, Some(libc::ENOMEM | libc::EAGAIN))
}

/// Moves pages, where the system does.
///
/// # Safety
///
/// Both are mapped pages of a reservation, which do not overlap; nobody uses what is at `to`, nor
/// what is at `from` by another address than `to` afterwards, and not at all unless they are used.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn move_pages(from: NonNull<u8>, to: NonNull<u8>, bytes: usize, are_used: bool) -> Outcome {
    // SAFETY: the caller's promise.
    if are_used && !unsafe { is_one_mapping(from, bytes) } {
        return Outcome::Refused;
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let (old, new) = (from.as_ptr().cast::<libc::c_void>(), to.as_ptr().cast::<libc::c_void>());
    // SAFETY: the caller's promise.
    let moved = unsafe { libc::mremap(old, bytes, bytes, flags, new) };
    if moved != libc::MAP_FAILED {
        return Outcome::Done;
    }
    // Kernels that do not know the flags, and filters of system calls, refuse before they unmap.
    let error = std::io::Error::last_os_error().raw_os_error();
    let was_unmapped = was_unmapped(to, bytes);
    if was_unmapped || matches!(error, Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) {
        Outcome::Refused
    } else {
        Outcome::Lost
    }
}

/// Refuses.
///
/// # Safety
///
/// None.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn move_pages(_: NonNull<u8>, _: NonNull<u8>, _: usize, _: bool) -> Outcome {
    Outcome::Refused
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use core::time::Duration;

    use super::*;

    const PAGE: usize = 1 << 16;

    fn at(start: NonNull<u8>, page: usize) -> NonNull<u8> {
        // SAFETY: within the reservation of a test.
        unsafe { start.add(page * PAGE) }
    }

    fn bytes<'a>(start: NonNull<u8>, pages: usize) -> &'a [u8] {
        // SAFETY: mapped by the test, which writes nothing there meanwhile.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), pages * PAGE) }
    }

    /// In a process of its own: addresses where nothing is may be given to another test's thread.
    #[test]
    fn what_another_mapped_is_not_taken() {
        let name = "what_another_mapped_is_not_taken";
        testkit::process::alone(module_path!(), name, Duration::from_secs(60), others_mappings_stay);
    }

    fn others_mappings_stay() {
        let start = reserve(4 * PAGE).unwrap();
        // SAFETY: the test's addresses, of which the middle goes, and half of that to another.
        unsafe {
            release(at(start, 1), 2 * PAGE);
            assert!(was_unmapped(at(start, 1), 2 * PAGE), "nothing is there");
            assert!(!was_unmapped(at(start, 1), 2 * PAGE), "something is there");
            release(at(start, 1), 2 * PAGE);
            assert!(map(at(start, 2).as_ptr(), PAGE, libc::MAP_FIXED).is_some());
            at(start, 2).write_bytes(7, PAGE);
            assert!(!was_unmapped(at(start, 1), 2 * PAGE));
            assert!(bytes(at(start, 2), 1).iter().all(|byte| *byte == 7));
            release(start, 4 * PAGE);
        }
    }

    #[test]
    fn pages_of_several_mappings_come_or_stay() {
        let start = reserve(32 * PAGE).unwrap();
        // SAFETY: the test's addresses.
        unsafe {
            start.write_bytes(1, 4 * PAGE);
            at(start, 8).write_bytes(2, PAGE);
            let moved = move_pages(at(start, 8), at(start, 1), PAGE, false);
            let old = bytes(at(start, 8), 1)[0];
            assert_eq!(old, if moved == Outcome::Done { 0 } else { 2 }, "{moved:?}");
            if moved == Outcome::Done {
                assert_eq!(move_pages(start, at(start, 16), 4 * PAGE, true), Outcome::Refused, "several");
                assert_eq!(bytes(start, 4)[..2 * PAGE], [[1; PAGE], [2; PAGE]].concat());
                assert_eq!(move_pages(at(start, 2), at(start, 16), 2 * PAGE, true), Outcome::Done);
                assert_eq!(bytes(at(start, 16), 2), [1; 2 * PAGE]);
            }
            match move_pages(start, at(start, 16), 4 * PAGE, false) {
                Outcome::Done => assert!(bytes(start, 4).iter().all(|byte| *byte == 0)),
                // What it was to come to is there, and usable.
                Outcome::Refused => at(start, 16).write_bytes(3, 4 * PAGE),
                Outcome::Lost => {}
            }
            assert_eq!(renew(start, 16 * PAGE), Outcome::Done);
            assert!(bytes(start, 16).iter().all(|byte| *byte == 0));
            release(start, 32 * PAGE);
        }
    }
}
