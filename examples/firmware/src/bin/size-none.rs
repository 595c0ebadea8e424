//! What every firmware has: the sizes of the others are given without this.
#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let memory: &'static mut [u8] = cortex_m::singleton!(: [u8; 4096] = [0; 4096]).expect("taken once");
    loop {
        black_box(&mut *memory).fill(black_box(1));
        black_box(&*memory);
    }
}
