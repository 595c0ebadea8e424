//! Packets of different lengths, of which up to four wait: in 2 KiB of static memory.
#![no_std]
#![no_main]

use bufslot::{Builder, NoFallback, Region};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use heapless::Deque;
use {lm3s6965 as _, panic_halt as _};

#[entry]
fn main() -> ! {
    let memory = cortex_m::singleton!(: [u8; 2048] = [0; 2048]).unwrap();
    let region = Region::from_static(memory);
    let builder = Builder::new().slots(8);
    let mut pool = builder.build_in(region, NoFallback).unwrap();
    let mut waiting = Deque::<_, 4>::new();
    let mut sum = 0;
    for number in 0..1000_usize {
        let mut packet = pool.acquire(number % 256).unwrap();
        packet.resize(number % 256, number as u8).unwrap();
        if let Err(packet) = waiting.push_back(packet) {
            let first = waiting.pop_front().unwrap();
            sum += first.iter().map(|&byte| u32::from(byte)).sum::<u32>();
            waiting.push_back(packet).ok().unwrap();
        }
    }
    hprintln!("{}", sum);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
