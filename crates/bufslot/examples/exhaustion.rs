//! A pool that runs full: behind the last buffer first, then before the others, then from the heap.
//!
//! ```text
//! cargo run -p bufslot --example exhaustion
//! ```
//!
//! prints one line a step: who is in each of the eight slots, and where the pool carves.
#![allow(clippy::std_instead_of_alloc, reason = "a program with an operating system")]

use std::collections::VecDeque;

use bufslot::{Error, Mode, SlotBuf, SlotPool};

type Queue = VecDeque<SlotBuf>;

/// Puts one buffer of one byte at the end of the queue.
fn add(pool: &mut SlotPool, queue: &mut Queue, name: u8) -> Result<(), Error> {
    let mut buf = pool.acquire(1)?;
    buf.push(name)?;
    queue.push_back(buf);
    draw(pool, queue);
    Ok(())
}

fn draw(pool: &SlotPool, queue: &Queue) {
    let mut picture = [b'-'; 8];
    for buf in queue {
        if let Some(slot) = pool.slot_of(buf) {
            picture[slot] = buf[0];
        }
    }
    println!("{}  {}", String::from_utf8_lossy(&picture), pool.mode());
}

fn main() -> Result<(), Error> {
    let mut pool = SlotPool::new(8, 8)?; // one byte for each slot
    let mut queue = Queue::new();
    draw(&pool, &queue);

    for _ in 0..4 {
        add(&mut pool, &mut queue, b'a')?;
    }
    assert_eq!(pool.mode(), Mode::Back);

    // The oldest goes; there is still room behind the newest.
    queue.pop_front();
    draw(&pool, &queue);
    add(&mut pool, &mut queue, b'b')?;
    assert_eq!(pool.mode(), Mode::Back);

    // Three more fill the back; the fourth takes the place of the one that went.
    for _ in 0..4 {
        add(&mut pool, &mut queue, b'c')?;
    }
    assert_eq!(pool.mode(), Mode::Front);

    // Nothing is left: this one is on the heap.
    add(&mut pool, &mut queue, b'd')?;
    assert_eq!(pool.mode(), Mode::Fallback);
    assert!(queue.back().is_some_and(|buf| buf.lease().is_fallback()));
    Ok(())
}
