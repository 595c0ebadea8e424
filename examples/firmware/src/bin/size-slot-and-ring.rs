//! The least that uses the slot pool and the ring: what they share is there once.
#![no_std]
#![no_main]

use core::hint::black_box;

use bufcore::{BufferPool, NoFallback, Region};
use cortex_m_rt::entry;
use lm3s6965 as _;
use panic_halt as _;

fn turn(pool: &mut impl BufferPool) {
    let Ok(mut buf) = pool.acquire(black_box(100)) else { return };
    let _ = black_box(&mut buf).extend_from_slice(black_box(&[1; 10]));
    let view = buf.freeze();
    black_box(view.clone());
    black_box(view);
}

#[entry]
fn main() -> ! {
    let memory: &'static mut [u8] = cortex_m::singleton!(: [u8; 4096] = [0; 4096]).expect("taken once");
    let (first, second) = memory.split_at_mut(2048);
    let builder = bufslot::Builder::new().slots(16);
    let Ok(mut pool) = builder.build_in(Region::from_static(first), NoFallback) else { panic!() };
    let Ok(mut ring) = bufring::Builder::new().build_static(second) else { panic!() };
    loop {
        turn(&mut pool);
        turn(&mut ring);
    }
}
