//! Firmware for the LM3S6965: the pools on bare metal, over static memory, with no allocator.
//!
//! 1. The scenarios of `no-std-scenarios`, which a program on Linux runs as well.
//! 2. Buffers that are released in an exception handler, in the middle of what the main program does ([`interrupts`]).
//! 3. Bytes from an exception handler to the main program, through a channel ([`channel`]).
//! 4. A serial link in frames: received in interrupt handlers, straight into pools ([`link`]).
//!
//! It ends by semihosting: with success when all of that held, with failure otherwise. On the command line, `corrupt` damages a
//! byte on the wire behind the receiver's back, and `panic` panics: both have to end in failure.
#![no_std]
#![no_main]

mod channel;
mod command_line;
mod interrupts;
mod link;
mod uart;

use core::panic::PanicInfo;

use bufcore::{Buf, NoFallback};
use bufring::RingPool;
use bufslot::SlotPool;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use no_std_scenarios::{Checked, Memory, check, ok};

/// Rounds of traffic on each pool.
const ROUNDS: u32 = 20_000;

/// A region of this number of bytes, of its own; each use in the text can be had once.
macro_rules! region {
    ($bytes:literal) => {{
        let bytes = cortex_m::singleton!(: [u8; $bytes] = [0xEE; $bytes]);
        bufcore::Region::from_static(no_std_scenarios::some!(bytes))
    }};
}

#[entry]
fn main() -> ! {
    let mode = command_line::last_word();
    if mode.is(b"panic") {
        panic!("as asked for");
    }
    match run(mode.is(b"corrupt")) {
        Ok(()) => {
            hprintln!("firmware: all is well");
            debug::exit(debug::EXIT_SUCCESS);
        }
        Err(failed) => {
            hprintln!("firmware: {}", failed);
            debug::exit(debug::EXIT_FAILURE);
        }
    }
    loop {}
}

fn run(corrupt: bool) -> Checked {
    let memory = Memory { lent: region!(8192), lost: [region!(2048), region!(2048), region!(2048)] };
    let lent = no_std_scenarios::all(memory, ROUNDS, |scenario| hprintln!("{}", scenario))?;
    hprintln!("== released in exception handlers");
    let mut timer = no_std_scenarios::some!(cortex_m::Peripherals::take()).SYST;
    let lent = interrupts::run(lent, region!(4096), &mut timer)?;
    hprintln!("== a channel from an exception handler");
    channel::run(&mut timer)?;
    hprintln!("== a serial link");
    link::run(lent, region!(4096), region!(4096), corrupt)?;
    handles()
}

/// What a pool takes besides its region, and of it.
fn handles() -> Checked {
    let (slots, ring) = (region!(1024), region!(1024));
    let slots = ok!(bufslot::Builder::new().slots(16).build_in(slots, NoFallback));
    let ring = ok!(bufring::Builder::new().build_in(ring));
    check!(slots.capacity() < 1024 && ring.capacity() < 1024);
    hprintln!(
        "bytes: pool of slots {}, buffer {}, of the region {} for 16 slots; ring {}, buffer {}, of the region {}; ring of bytes {}",
        size_of::<SlotPool<NoFallback>>(),
        size_of::<Buf<<SlotPool<NoFallback> as bufcore::BufferPool>::Lease>>(),
        1024 - slots.capacity(),
        size_of::<RingPool>(),
        size_of::<Buf<bufring::RingLease>>(),
        1024 - ring.capacity(),
        size_of::<bufmirror::MirrorRing>(),
    );
    Ok(())
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("firmware: {}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {}
}
