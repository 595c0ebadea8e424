//! A program without the standard library. It runs the scenarios of `no-std-scenarios` over static memory, as the firmware does on a
//! microcontroller, and, with `alloc`, pools on a heap that only grows.
//!
//! That it links says more than what it does. With `std` anywhere below, the panic handler would be there twice, and with
//! `alloc` and no allocator the linker would miss one. Exit codes: 0 when all is well, 1 when a check does not hold, which it prints,
//! and 255 for a panic.
#![no_std]
#![no_main]

#[cfg(feature = "alloc")]
mod bump;
#[cfg(feature = "alloc")]
mod heap;
mod system;

use core::cell::UnsafeCell;
use core::fmt::Write;

use bufslot::bufcore::Region;
use no_std_scenarios::{Checked, Memory};

use system::{Output, exit, print};

/// Rounds of traffic on each pool.
const ROUNDS: u32 = 100_000;

#[repr(align(64))]
struct Static<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

// SAFETY: each is used once: by `run`, which runs once.
unsafe impl<const BYTES: usize> Sync for Static<BYTES> {}

static LENT: Static<8192> = Static(UnsafeCell::new([0xEE; 8192]));
static LOST: [Static<2048>; 3] = [const { Static(UnsafeCell::new([0xEE; 2048])) }; 3];

/// Called by the entry point, once.
#[unsafe(no_mangle)]
extern "C" fn run() -> ! {
    if let Err(failed) = scenarios() {
        // Nothing to do about it: the exit code says it, too.
        let _ = writeln!(Output, "nostd-check: {failed}");
        exit(1);
    }
    print(b"nostd-check: pools without the standard library work\n");
    exit(0)
}

fn scenarios() -> Checked {
    let region = |bytes: *mut [u8]| {
        // SAFETY: the only borrow of this memory there ever is: each is taken once below, and this function runs once.
        Region::from_static(unsafe { &mut *bytes })
    };
    let lost = LOST.each_ref().map(|memory| region(memory.0.get()));
    no_std_scenarios::all(Memory { lent: region(LENT.0.get()), lost }, ROUNDS, |_| {})?;
    #[cfg(feature = "alloc")]
    heap::all()?;
    Ok(())
}
