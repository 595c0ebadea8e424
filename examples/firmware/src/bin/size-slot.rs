//! The least that uses the slot pool: buffers are acquired, filled, shared as views, and released.
#![no_std]
#![no_main]

use core::hint::black_box;

use bufcore::{NoFallback, Region};
use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let memory: &'static mut [u8] = cortex_m::singleton!(: [u8; 4096] = [0; 4096]).expect("taken once");
    let builder = bufslot::Builder::new().slots(16);
    let Ok(mut pool) = builder.build_in(Region::from_static(memory), NoFallback) else { panic!() };
    loop {
        let Ok(mut buf) = pool.acquire(black_box(100)) else { continue };
        let _ = black_box(&mut buf).extend_from_slice(black_box(&[1; 10]));
        let view = buf.freeze();
        black_box(view.clone());
        black_box(view);
    }
}
