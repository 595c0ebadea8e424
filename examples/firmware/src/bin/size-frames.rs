//! The least that makes frames in a slot pool: a writer that grows, and a view of what it has.
#![no_std]
#![no_main]

use core::hint::black_box;

use bufcore::{NoFallback, Region, Writer};
use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let memory: &'static mut [u8] = cortex_m::singleton!(: [u8; 4096] = [0; 4096]).expect("taken once");
    let builder = bufslot::Builder::new().slots(16);
    let Ok(mut pool) = builder.build_in(Region::from_static(memory), NoFallback) else { panic!() };
    loop {
        let mut frame = Writer::new(&mut pool);
        let _ = frame.extend_from_slice(black_box(&[1; 10]));
        let _ = frame.extend_from_slice(black_box(&[2; 20]));
        let view = frame.finish().freeze();
        black_box(view.clone());
        black_box(view);
    }
}
