//! Orders accesses to one byte through its two addresses, and has the atomics for memory that two
//! processes share.

/// Atomics over memory that another process may write at the same time. They are the language's own
/// in every build that has them: a checker's are no integers that lie in shared memory, and its
/// models have one process.
#[cfg(all(
    feature = "std",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, loom, shuttle))
))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU64};

/// Ends the use of bytes through one of their addresses, before the other one is used.
///
/// Each byte of a mapped ring has two addresses. The language knows no such memory, so a compiler
/// may take the two for different places: it may let a load through one pass a store through the
/// other, or answer it from what was there before. What it may not do is look into this block,
/// which reads and writes any memory that it could reach. As far as the compiler can tell, the
/// block copies every byte from the address that was used up to here to the one that is used from
/// here on; in the copying ring (see `map`) that is what really happens. The processor needs no
/// such fence: within one thread it compares physical addresses.
///
/// Cost: no instruction; the compiler keeps nothing that is in memory in registers across it.
#[inline(always)]
pub(crate) fn end_of_addresses() {
    // The platforms on which inline assembly is stable. Miri has none, nor mapped rings.
    #[cfg(all(
        any(
            target_arch = "x86",
            target_arch = "x86_64",
            target_arch = "arm",
            target_arch = "aarch64",
            target_arch = "riscv32",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "s390x",
        ),
        not(miri)
    ))]
    // SAFETY: the block has no instruction in it, so it keeps every promise of its options, and all
    // of the language's.
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags));
    }
    // Where there is none, this has to do; elsewhere it adds nothing, not even an instruction.
    // ORDER: no other thread takes part; SeqCst, so that the compiler moves no access across, in
    // either direction.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}
