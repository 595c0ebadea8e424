//! Bytes from an exception handler to the main program, through a channel.
//!
//! A timer interrupts the main program every few hundred instructions, and the handler writes. The main program compares what it
//! reads, in place, while more comes.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};

use bufmirror::StaticChannel;
use cortex_m::peripheral::SYST;
use cortex_m_semihosting::hprintln;
use critical_section::Mutex;
use no_std_scenarios::channel::{Reader, Writer};
use no_std_scenarios::{Checked, check, some};

/// Bytes that have to come. After each part of them the main program waits until the handler finds too little room.
const BYTES: usize = 400_000;
const PART: usize = 20_000;

static WRITER: Mutex<RefCell<Option<Writer<'static>>>> = Mutex::new(RefCell::new(None));
static WRITES: AtomicU32 = AtomicU32::new(0);
static FULL: AtomicU32 = AtomicU32::new(0);

/// The handler's part. Returns whether it was the channel's turn.
pub(crate) fn tick() -> bool {
    let written = critical_section::with(|section| WRITER.borrow_ref_mut(section).as_mut().map(Writer::step));
    let Some(had_room) = written else { return false };
    // ORDER: Relaxed, here and below: one processor.
    WRITES.store(WRITES.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    FULL.store(FULL.load(Ordering::Relaxed) + u32::from(!had_room), Ordering::Relaxed);
    true
}

/// Runs it with the timer that calls the handler, which was set up.
pub(crate) fn run(timer: &mut SYST) -> Checked {
    let channel = cortex_m::singleton!(: StaticChannel<512> = StaticChannel::new());
    let (producer, consumer) = some!(channel).ends();
    critical_section::with(|section| WRITER.borrow_ref_mut(section).replace(Writer::new(producer)));
    let mut reader = Reader::new(consumer);
    timer.enable_interrupt();
    timer.enable_counter();
    let mut empty = 0_u32;
    for part in 1..=BYTES / PART {
        while reader.read < part * PART {
            empty += u32::from(!reader.step()?);
        }
        // ORDER: Relaxed, here and below: one processor.
        let full = FULL.load(Ordering::Relaxed);
        while FULL.load(Ordering::Relaxed) == full {}
    }
    timer.disable_interrupt();
    timer.disable_counter();
    check!(empty > 0);
    hprintln!(
        "{} bytes read of {} writes; {} found too little room; {} looks found nothing",
        reader.read,
        // ORDER: Relaxed, here and below: the handler does not run any more.
        WRITES.load(Ordering::Relaxed),
        FULL.load(Ordering::Relaxed),
        empty
    );
    Ok(())
}
