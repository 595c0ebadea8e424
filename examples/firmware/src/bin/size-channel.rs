//! The least that uses a channel: some bytes are written, looked at, and taken.
#![no_std]
#![no_main]

use core::hint::black_box;

use bufmirror::StaticChannel;
use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let channel = cortex_m::singleton!(: StaticChannel<4096> = StaticChannel::new()).expect("taken once");
    let (mut producer, mut consumer) = channel.ends();
    loop {
        let Ok(window) = producer.reserve(black_box(100)) else { continue };
        window.fill(black_box(1));
        producer.commit(black_box(100));
        let len = black_box(consumer.peek()).len();
        consumer.consume(len);
    }
}
