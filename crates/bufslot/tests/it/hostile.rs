//! Users' parts that lie, panic and come back in, as a frame's writer meets them.

use bufslot::SlotPool;
use buftest::hostile::Scripted;
use buftest::trials::fallbacks;

fn over(fallback: Scripted) -> SlotPool<Scripted> {
    SlotPool::builder().capacity(4096).build_with(fallback).expect("settings are right")
}

#[test]
fn t21_lying_fallback_of_a_writer() {
    fallbacks::t21_lies(over, |pool, body| body(&mut pool.open_frame()));
}

#[test]
fn t22_panicking_fallback_of_a_writer() {
    fallbacks::t22_panics(over, |pool, body| body(&mut pool.open_frame()), |buf| buf.lease().is_fallback());
}

#[test]
fn t23_reentering_fallback_of_a_writer() {
    fallbacks::t23_reentered(
        over,
        |pool, body| body(&mut pool.open_frame()),
        |buf| buf.lease().is_fallback(),
    );
}
