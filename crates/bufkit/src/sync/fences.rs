//! A pair of fences, of which one costs nothing, and the other a system call.
//!
//! Two threads may each announce an event and then check for the other's announcement. Between the
//! two steps each needs a fence, so that at least one sees the other (Dekker 1965). If one side
//! does so often, its fence should cost nothing.
//!
//! On Linux, [`light`] only prevents the compiler from reordering the two steps. [`heavy`], on the
//! other side, makes every running thread of the process execute a full fence, by `membarrier(2)`.
//! The hazard pointers of folly and the proposal P1202 for C++ use the same technique. On other
//! systems, under Miri and in models, both sides execute a full fence.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! use bufkit::sync::fences;
//!
//! /// Set by a thread while it uses its cache, many million times a second.
//! static IN_USE: AtomicBool = AtomicBool::new(false);
//! /// Set by another thread that wants to take the cache over, once in a while.
//! static CLAIMED: AtomicBool = AtomicBool::new(false);
//!
//! let both_full = !fences::has_heavy(); // asked for once, when the pool is made
//! let fast_path = || {
//!     IN_USE.store(true, Ordering::Relaxed);
//!     if both_full { fences::full() } else { fences::light() }
//!     let may_use = !CLAIMED.load(Ordering::Acquire);
//!     IN_USE.store(false, Ordering::Release);
//!     may_use
//! };
//! let claim = || {
//!     CLAIMED.store(true, Ordering::Relaxed);
//!     fences::heavy(both_full) && !IN_USE.load(Ordering::Acquire)
//! };
//! assert!(fast_path() && claim() && !fast_path());
//! ```
//!
//! `membarrier` executes a full fence on each processor that runs a thread of the process, before
//! it returns; a thread that does not run executed one when it was switched out. With the
//! compiler's fence on the other side, either that thread's store is visible after the call, or its
//! load comes after the claim. The language's memory model has no such fence, so it publishes
//! nothing: every handover of memory has its own Release and Acquire.

use crate::sync::{Ordering, compiler_fence, fence};

/// Whether the fence of the fast paths is nothing but the compiler's.
const IS_LIGHT: bool = cfg!(all(target_os = "linux", not(miri), not(any(loom, shuttle))));

/// Executes the fence between the two steps of a fast path.
#[inline(always)]
pub fn light() {
    // ORDER: SeqCst pairs with `heavy`: either that side sees what this one announced, or this one
    // sees the claim.
    if IS_LIGHT {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Executes the fence between the two steps of a claim. `both_full` means that the other side
/// executes `full`.
///
/// It returns `false` if the system refuses the fence; the caller may then conclude nothing.
pub fn heavy(both_full: bool) -> bool {
    // ORDER: SeqCst pairs with `light`.
    fence(Ordering::SeqCst);
    !IS_LIGHT || both_full || membarrier::execute()
}

/// Enables `heavy`, once in a process.
///
/// It returns `false` if the system has no such fence. Threads must then execute `full` on their
/// side.
pub fn has_heavy() -> bool {
    !IS_LIGHT || membarrier::register()
}

/// Executes the fence for both sides if the system has no other.
pub fn full() {
    // ORDER: SeqCst pairs with itself, as `light` does with `heavy`.
    fence(Ordering::SeqCst);
}

#[cfg(all(target_os = "linux", not(miri), not(any(loom, shuttle))))]
mod membarrier {
    use crate::sync::{AtomicU32, Ordering};

    const UNKNOWN: u32 = 0;
    const REGISTERED: u32 = 1;
    const REFUSED: u32 = 2;

    static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the call takes three plain numbers and touches none of our memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        // ORDER: Relaxed: the answer is the kernel's, for the whole process. An old one makes
        // `heavy` fail, which is seen there.
        let mut state = STATE.load(Ordering::Relaxed);
        if state == UNKNOWN {
            let answer = call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
            state = if answer { REGISTERED } else { REFUSED };
            STATE.store(state, Ordering::Relaxed);
        }
        state == REGISTERED
    }

    /// Executes the fence on all of the process's processors, and returns whether the system did
    /// so. A filter may come later, as sandboxes are often closed after the start. From then on
    /// `has_heavy` says so.
    pub(super) fn execute() -> bool {
        let is_executed = call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        if !is_executed {
            // ORDER: Relaxed: as in `register`; who was told otherwise before finds out here.
            STATE.store(REFUSED, Ordering::Relaxed);
        }
        is_executed
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(any(loom, shuttle)))))]
mod membarrier {
    pub(super) fn register() -> bool {
        true
    }

    pub(super) fn execute() -> bool {
        true
    }
}
