//! The tests of the ring, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod conformance;
mod costs;
mod growing;
mod locals;
mod pages;
mod regions;
mod split;
mod turns;
mod vectors;
mod words;
