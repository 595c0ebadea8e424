//! Slot pools under load: each thread has its own, and their buffers go
//! everywhere.

use bufslot::SlotPool;
use bufslot::bufcore::{BufferPool, NoFallback};
use testkit::stress::pools::{Subject, round};
use testkit::stress::run;

fn refusing() -> SlotPool<NoFallback> {
    let builder = SlotPool::builder().capacity(128 << 10).slots(48);
    builder.build_with(NoFallback).expect("settings are right")
}

/// Nothing is out, and the largest request is served.
fn at_rest<F: BufferPool>(pool: &mut SlotPool<F>) {
    assert!(pool.is_idle(), "buffers that never came back");
    let bytes = pool.capacity();
    assert!((0..pool.slots()).all(|index| !pool.is_taken(index)), "slots that are taken");
    assert_eq!(pool.acquire(bytes).map(|buf| buf.capacity() >= bytes), Ok(true), "all of it is free");
}

fn main() {
    let refuses = Subject::<SlotPool<NoFallback>, ()> {
        shared: |_| (),
        pool: |()| refusing(),
        own: |_, _, _| {},
        at_rest,
    };
    let over_heap = Subject::<SlotPool, ()> {
        shared: |_| (),
        pool: |()| SlotPool::new(64 << 10, 16).expect("settings are right"),
        own: |_, _, _| {},
        at_rest,
    };
    run("slot", &[("refusing", &|one| round(&refuses, one)), ("over-heap", &|one| round(&over_heap, one))]);
}
