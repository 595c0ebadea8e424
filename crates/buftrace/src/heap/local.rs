//! The variables of each thread, where a signal's handler and an allocator may look at any time.
//!
//! A thread-local variable of a library that is loaded at start is reached through
//! `__tls_get_addr`, which may allocate when other libraries were loaded since. In an allocator
//! that is a recursion. On x86-64 the address is therefore computed from a place that the dynamic
//! linker fixed at start (initial exec), which the language has no word for.

use core::cell::Cell;

/// What a thread knows. All begins as zeros.
pub(super) struct Local {
    /// Bytes until the next sample. Under 0 between a request and its sample.
    pub(super) left: Cell<i64>,
    /// Of the random numbers; 0 until the first.
    pub(super) seed: Cell<u64>,
    /// Whether the thread is in the recorder.
    pub(super) inside: Cell<bool>,
    pub(super) number: Cell<u32>,
    /// The recording that `number` belongs to.
    pub(super) era: Cell<u32>,
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod place {
    use super::Local;

    /// Of the variable below.
    const BYTES: usize = 64;
    const ALIGN: usize = 16;
    const _: () = assert!(size_of::<Local>() <= BYTES && align_of::<Local>() <= ALIGN);

    // Thread-local, zero, and of no interest to other libraries.
    core::arch::global_asm!(
        ".pushsection .tbss.buftrace,\"awT\",@nobits",
        ".p2align 4",
        ".globl buftrace_heap_local_0_1",
        ".hidden buftrace_heap_local_0_1",
        ".type buftrace_heap_local_0_1,@object",
        ".size buftrace_heap_local_0_1,64",
        "buftrace_heap_local_0_1:",
        ".zero 64",
        ".popsection",
    );

    // Not inlined: a library that is linked dynamically would not find the variable.
    #[inline(never)]
    pub(super) fn address() -> *const Local {
        let address: *const Local;
        // SAFETY: reads the thread's base and the distance that the linker wrote, and nothing else.
        unsafe {
            core::arch::asm!(
                "mov {address}, qword ptr fs:[0]",
                "add {address}, qword ptr [rip + buftrace_heap_local_0_1@GOTTPOFF]",
                address = out(reg) address,
                options(pure, readonly, nostack),
            );
        }
        address
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod place {
    use core::cell::Cell;
    use core::ptr;

    use super::Local;

    std::thread_local! {
        /// Needs no destructor, and no initialisation: so nothing is allocated for it.
        static LOCAL: Local = const {
            Local {
                left: Cell::new(0),
                seed: Cell::new(0),
                inside: Cell::new(false),
                number: Cell::new(0),
                era: Cell::new(0),
            }
        };
    }

    pub(super) fn address() -> *const Local {
        LOCAL.with(ptr::from_ref)
    }
}

/// Calls `call` with what this thread knows.
#[inline]
pub(super) fn with<R>(call: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: this thread's own variable, of zeros or of what was stored, which lives as long as
    // the thread. It is lent for the call alone, and all of it is in cells.
    call(unsafe { &*place::address() })
}

#[cfg(test)]
mod tests {
    use super::with;

    #[test]
    fn each_thread_has_its_own() {
        with(|local| local.number.set(77));
        let other = std::thread::spawn(|| with(|local| (local.number.replace(5), local.left.get())));
        assert_eq!(other.join().unwrap(), (0, 0));
        assert_eq!(with(|local| local.number.replace(0)), 77);
    }
}
