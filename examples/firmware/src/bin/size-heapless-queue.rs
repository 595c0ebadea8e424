//! The least that uses the queue of `heapless` as a channel of bytes.
#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;
use heapless::spsc::Queue;
use lm3s6965 as _;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let queue = cortex_m::singleton!(: Queue<u8, 4096> = Queue::new()).expect("taken once");
    let (mut producer, mut consumer) = queue.split();
    loop {
        for byte in black_box(&[1; 10]) {
            let _ = producer.enqueue(*byte);
        }
        while let Some(byte) = consumer.dequeue() {
            black_box(byte);
        }
    }
}
