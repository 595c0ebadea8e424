//! The tests of the slot pool, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod conformance;
mod costs;
mod frames;
mod hostile;
mod pages;
mod pictures;
mod queues;
mod regions;
mod split;
mod words;
