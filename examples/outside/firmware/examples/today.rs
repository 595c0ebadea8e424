//! Packets of different lengths, of which up to four wait: in 2 KiB of static memory.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use heapless::pool::boxed::{Box, BoxBlock};
use heapless::{Deque, box_pool};
use {lm3s6965 as _, panic_halt as _};

type Block = BoxBlock<[u8; 256]>;

box_pool!(Pool: [u8; 256]);

#[entry]
fn main() -> ! {
    let blocks = cortex_m::singleton!(: [Block; 8] = [const { Block::new() }; 8]).unwrap();
    for block in blocks {
        Pool.manage(block);
    }
    let mut waiting = Deque::<(usize, Box<Pool>), 4>::new();
    let mut sum = 0;
    for number in 0..1000_usize {
        let mut packet = Pool.alloc([0; 256]).ok().unwrap();
        packet[..number % 256].fill(number as u8);
        if let Err(packet) = waiting.push_back((number % 256, packet)) {
            let (len, first) = waiting.pop_front().unwrap();
            sum += first[..len]
                .iter()
                .map(|&byte| u32::from(byte))
                .sum::<u32>();
            waiting.push_back(packet).ok().unwrap();
        }
    }
    hprintln!("{}", sum);
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
