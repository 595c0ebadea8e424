//! The serial ports of the LM3S6965: ARM's PL011, as far as it is needed here.

use core::ptr;

use lm3s6965::Interrupt;

/// Where the clock is switched on for a port.
const CLOCKS: usize = 0x400F_E104;

/// Registers, in bytes from the port's start.
const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const LINE: usize = 0x2C;
const CONTROL: usize = 0x30;
const INTERRUPTS: usize = 0x38;
const CLEAR: usize = 0x44;

const RECEIVED_NONE: u32 = 1 << 4;
const SENDING_FULL: u32 = 1 << 5;
/// Eight bits, and queues of 16 bytes.
const EIGHT_BITS_QUEUED: u32 = 0b111 << 4;
/// The port, sending, receiving.
const ENABLED: u32 = 1 | 1 << 8 | 1 << 9;
/// Bytes have come, or have been waiting for a while.
const RECEIVED: u32 = 1 << 4 | 1 << 6;

/// A serial port. Sending and receiving use different registers, so that the main program may send while a handler receives.
#[derive(Clone, Copy)]
pub(crate) struct Uart {
    start: usize,
    number: u32,
    interrupt: Interrupt,
}

pub(crate) const UART0: Uart = Uart { start: 0x4000_C000, number: 0, interrupt: Interrupt::UART0 };
pub(crate) const UART1: Uart = Uart { start: 0x4000_D000, number: 1, interrupt: Interrupt::UART1 };

impl Uart {
    /// Switches the port on; its handler runs when bytes come.
    pub(crate) fn start(self) {
        modify(CLOCKS, |clocks| clocks | 1 << self.number);
        self.write(LINE, EIGHT_BITS_QUEUED);
        self.write(CONTROL, ENABLED);
        self.write(CLEAR, u32::MAX);
        self.write(INTERRUPTS, RECEIVED);
        // SAFETY: no critical section of this program is built on this interrupt being masked.
        unsafe { cortex_m::peripheral::NVIC::unmask(self.interrupt) };
    }

    /// Sends `bytes`, waiting for the port.
    pub(crate) fn send(self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            while self.read(FLAGS) & SENDING_FULL != 0 {}
            self.write(DATA, u32::from(byte));
        }
    }

    /// The next byte that has come.
    pub(crate) fn received(self) -> Option<u8> {
        if self.read(FLAGS) & RECEIVED_NONE != 0 {
            return None;
        }
        // The bits above are errors of the line; a frame's checksum finds what they would tell.
        Some(self.read(DATA) as u8)
    }

    /// For the handler, when it has taken all.
    pub(crate) fn clear_interrupt(self) {
        self.write(CLEAR, RECEIVED);
    }

    fn read(self, register: usize) -> u32 {
        // SAFETY: a register of a port of this device, aligned; reading one has no effect on memory.
        unsafe { ptr::with_exposed_provenance::<u32>(self.start + register).read_volatile() }
    }

    fn write(self, register: usize, value: u32) {
        // SAFETY: as for reading; the ports are not given memory to write to.
        unsafe { ptr::with_exposed_provenance_mut::<u32>(self.start + register).write_volatile(value) };
    }
}

/// Changes a register of the system.
fn modify(register: usize, change: impl FnOnce(u32) -> u32) {
    let register = ptr::with_exposed_provenance_mut::<u32>(register);
    // SAFETY: a register of this device, aligned.
    let value = unsafe { register.read_volatile() };
    // SAFETY: likewise; only clocks are switched there.
    unsafe { register.write_volatile(change(value)) };
}
