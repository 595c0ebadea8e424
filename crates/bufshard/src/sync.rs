//! The fence that costs one side nothing and the other a system call, and the atomics that the rest of the crate uses.
//!
//! A thread announces what it is about to do in its cache, then looks whether somebody else claims the cache; who claims it announces
//! that, then looks whether the thread is at work. Between the two steps of each stands a fence, so that not both can miss the other
//! (Dekker 1965). The thread does this for every buffer, so its fence must cost nothing: on Linux it only keeps the compiler from moving the
//! two, and the other side's `membarrier(2)` makes every running thread of the process execute a full one in between, wherever it is.
//! So do the hazard pointers of folly and the proposal P1202 for C++. Elsewhere, under Miri and in models both sides execute a full fence.

pub(crate) use bufcore::strategy::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// The lock, whatever became of those who had it before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// The lock, if nobody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}

/// Whether the fence of the fast paths is nothing but the compiler's.
const IS_LIGHT: bool = cfg!(all(target_os = "linux", not(miri), not(loom)));

/// The fence between the two steps of a fast path.
#[inline(always)]
pub(crate) fn light_fence() {
    if cfg!(bufworks_broken = "nofence") {
        return;
    }
    // ORDER: SeqCst pairs with `heavy_fence`: either that side sees what this one announced, or this one sees the claim.
    if IS_LIGHT {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    } else {
        bufcore::strategy::sync::fence(Ordering::SeqCst);
    }
}

/// The fence between the two steps of a claim; `both_full` says that the other side executes a `full_fence`. `false` when the system
/// gives none, and then nothing may be concluded.
pub(crate) fn heavy_fence(both_full: bool) -> bool {
    // ORDER: SeqCst pairs with `light_fence`.
    bufcore::strategy::sync::fence(Ordering::SeqCst);
    !IS_LIGHT || both_full || membarrier::execute()
}

/// Makes `heavy_fence` possible, once in a process. `false` where the system has none to give: threads then have to execute
/// `full_fence` on their side.
pub(crate) fn has_heavy_fence() -> bool {
    !IS_LIGHT || membarrier::register()
}

/// The fence for both sides where the system gives no other.
pub(crate) fn full_fence() {
    // ORDER: SeqCst pairs with itself, as `light_fence` does with `heavy_fence`.
    bufcore::strategy::sync::fence(Ordering::SeqCst);
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod membarrier {
    use super::{AtomicU32, Ordering};

    const UNKNOWN: u32 = 0;
    const REGISTERED: u32 = 1;
    const REFUSED: u32 = 2;

    static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the call takes three plain numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        // ORDER: Relaxed: the answer is the kernel's, for the whole process, and stays as it is.
        let mut state = STATE.load(Ordering::Relaxed);
        if state == UNKNOWN {
            let answer = call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
            state = if answer { REGISTERED } else { REFUSED };
            STATE.store(state, Ordering::Relaxed);
        }
        state == REGISTERED
    }

    pub(super) fn execute() -> bool {
        call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
mod membarrier {
    pub(super) fn register() -> bool {
        true
    }

    pub(super) fn execute() -> bool {
        true
    }
}
