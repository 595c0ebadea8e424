//! The least that uses the copying ring of bytes: some are written, looked at, and taken.
#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let memory: &'static mut [u8] = cortex_m::singleton!(: [u8; 4096] = [0; 4096]).expect("taken once");
    let Ok(mut ring) = bufmirror::Builder::new().build_static(memory) else { panic!() };
    loop {
        let Ok(window) = ring.reserve(black_box(100)) else { continue };
        window.fill(black_box(1));
        ring.commit(black_box(100));
        let len = black_box(ring.peek()).len();
        ring.consume(len);
    }
}
